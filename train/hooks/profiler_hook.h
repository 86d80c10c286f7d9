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
  // Is created.
  std::string output_directory;
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
};

// Writes timeline-<step>.json, which chrome://tracing and Perfetto show: the runs since the file before, at most 10000.
// What it sees is the time from its BeforeRun to its AfterRun ("run": on the chief the wait for the next step, on a
// worker computing a block and waiting for its fate; with BeforeRun of the hooks behind it and AfterRun of those before
// it), and the time between ("between runs": the other hooks and the loop's own code). It sees nothing of what happens
// inside of a step. Not on the first run. A file that cannot be written is a warning. Gates nothing.
class ProfilerHook : public Hook {
 public:
  // InvalidArgument for a wrong period, and without a directory.
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
  // When the first run began: the origin of all files.
  absl::optional<absl::Time> origin_;
  absl::Time begin_;
  std::deque<Interval> runs_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_PROFILER_HOOK_H_
