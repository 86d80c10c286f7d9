#ifndef LOCKSTEP_TRAIN_HOOKS_STOP_NAN_TENSOR_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_STOP_NAN_TENSOR_HOOK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

struct NanTensorOptions {
  // "loss": of the step, or on a worker of the block. Else a variable or optimizer state.
  std::string tensor = "loss";
  // False: a warning and a good end in place of an error.
  bool fail_on_nan = true;
};

// Ends the run at the first NaN: InvalidArgument, as for a loss that the chief refuses, or a stop. The chief looks at
// every loss itself, before the update, and a run whose loss is not finite fails whatever this hook says, unless
// training.end_on_non_finite or skip_non_finite has it otherwise; here it is what looks at variables, at the losses of
// steps that were skipped, and at what another session's losses are. Gates every step.
class NanTensorHook : public Hook {
 public:
  // InvalidArgument for an empty name.
  static absl::StatusOr<std::unique_ptr<NanTensorHook>> Create(const NanTensorOptions& options);

  std::string name() const override { return "NanTensorHook"; }
  absl::Status BeforeRun(RunContext& context) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;

 private:
  explicit NanTensorHook(const NanTensorOptions& options) : options_(options) {}

  const NanTensorOptions options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_NAN_TENSOR_HOOK_H_
