#ifndef LOCKSTEP_TRAIN_HOOKS_LOGGING_TENSOR_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_LOGGING_TENSOR_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

struct LoggingTensorOptions {
  // "loss" and "global_step" of the run, else variables and optimizer state.
  std::vector<std::string> tensors;
  // Exactly one of the two, or neither if at_end: every so many runs of this process, and the first; or whenever the
  // time has passed.
  absl::optional<int64_t> every_n_iter;
  absl::optional<absl::Duration> every_n_secs;
  // Once more at a good end, with the values of then.
  bool at_end = false;
  // Elements of each that are shown; -1: all.
  int64_t summarize = 8;
  // Makes the line of names and values, in the order of `tensors`. Empty: "loss = 0.5, global_step = 10", and from the
  // second line on the time since the one before, " (1.000 sec)".
  std::function<std::string(const std::vector<std::pair<std::string, Tensor>>&)> formatter;
  // Where lines go. Empty: the log, as INFO.
  std::function<void(const std::string&)> log;
  Clock* clock = Clock::Real();
};

// Logs values. Gates only the steps at which it reads variables, which with every_n_secs may be any.
class LoggingTensorHook : public Hook {
 public:
  // InvalidArgument for no tensors, and a wrong period.
  static absl::StatusOr<std::unique_ptr<LoggingTensorHook>> Create(const LoggingTensorOptions& options);

  std::string name() const override { return "LoggingTensorHook"; }
  bool OnlyLooks() const override { return true; }
  absl::Status Begin() override;
  absl::Status BeforeRun(RunContext& context) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override;

 private:
  LoggingTensorHook(const LoggingTensorOptions& options, absl::optional<SecondOrStepTimer> timer);
  absl::Status Log(const RunValues& values);

  const LoggingTensorOptions options_;
  // Those that are read.
  std::vector<std::string> variables_;
  // Absent: at the end alone. Its steps are runs, from 0.
  absl::optional<SecondOrStepTimer> timer_;
  int64_t runs_ = 0;
  // The global step before the first run.
  absl::optional<int64_t> origin_;
  // This run is logged.
  bool due_ = false;
  absl::optional<absl::Time> last_log_;
  RunValues last_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_LOGGING_TENSOR_HOOK_H_
