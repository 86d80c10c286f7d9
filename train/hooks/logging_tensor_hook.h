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
  // "loss" and "global_step" of the run, or names of variables and optimizer state.
  std::vector<std::string> tensors;
  // The number of this process's runs, or the time, between two lines. The first run is always logged. Exactly one of
  // the two must be set, or neither if at_end is set.
  absl::optional<int64_t> every_n_iter;
  absl::optional<absl::Duration> every_n_secs;
  // If true, logs once more at a successful end, with the values at that time.
  bool at_end = false;
  // The number of elements of each tensor to show; -1 shows all.
  int64_t summarize = 8;
  // Formats a line from names and values, in the order of `tensors`. The default line is "loss = 0.5, global_step =
  // 10"; from the second line on, it ends with the time since the previous one, " (1.000 sec)".
  std::function<std::string(const std::vector<std::pair<std::string, Tensor>>&)> formatter;
  // Receives the lines. If null, they are logged as INFO.
  std::function<void(const std::string&)> log;
  Clock* clock = Clock::Real();
};

// A hook that logs values. Gates only the steps at which it reads variables; with every_n_secs, this may be any step.
class LoggingTensorHook : public Hook {
 public:
  // Returns InvalidArgument if there are no tensors or an option is wrong.
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
  // The tensors to read from the session.
  std::vector<std::string> variables_;
  // Uses this process's runs, counted from 0, as steps. Absent if the hook logs only at the end.
  absl::optional<SecondOrStepTimer> timer_;
  int64_t runs_ = 0;
  // The global step before the first run.
  absl::optional<int64_t> origin_;
  // True if the current run is logged.
  bool due_ = false;
  absl::optional<absl::Time> last_log_;
  RunValues last_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_LOGGING_TENSOR_HOOK_H_
