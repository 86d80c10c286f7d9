#ifndef LOCKSTEP_TRAIN_HOOKS_PROFILER_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_PROFILER_HOOK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

struct ProfilerOptions {
  Period period;
  // The directory for the timelines; created if it does not exist.
  std::string output_directory;
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
};

// A hook that writes timeline-<step>.json files for chrome://tracing and Perfetto. Each file holds the runs since the
// previous file, at most 10000. It shows the time from the hook's BeforeRun to its AfterRun ("run") and the time in
// between ("between runs": the other hooks and the loop's own code), but nothing inside a step. On the chief, "run" is
// the wait for the next step; on a worker, it is the computation of a block and the wait for its result. It includes
// BeforeRun of later hooks and AfterRun of earlier ones. Writes no file at the first run. Logs a warning if it cannot
// write a file. Gates no step.
class ProfilerHook : public Hook {
 public:
  // Returns InvalidArgument if the period is invalid or there is no directory.
  static absl::StatusOr<std::unique_ptr<ProfilerHook>> Create(const ProfilerOptions& options);

  std::string name() const override { return "ProfilerHook"; }
  bool OnlyLooks() const override { return true; }
  absl::Status Begin() override;
  absl::Status BeforeRun(RunContext& context) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return false; }

 private:
  static constexpr size_t kMaxRuns = 10000;
  struct Interval {
    absl::Time begin, end;
    StepResult result;
  };

  ProfilerHook(const ProfilerOptions& options, const SecondOrStepTimer& timer) : options_(options), timer_(timer) {}
  std::string Timeline() const;
  absl::Status Write(int64_t step) const;

  const ProfilerOptions options_;
  SecondOrStepTimer timer_;
  // The start of the first run, which is the time origin of all files.
  absl::optional<absl::Time> origin_;
  absl::Time begin_;
  std::deque<Interval> runs_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_PROFILER_HOOK_H_
