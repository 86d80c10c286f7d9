#ifndef LOCKSTEP_TRAIN_HOOKS_STOP_NAN_TENSOR_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_STOP_NAN_TENSOR_HOOK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

struct NanTensorOptions {
  // "loss", which is the loss of the step or, on a worker, of the block; otherwise the name of a variable or optimizer
  // state.
  std::string tensor = "loss";
  // If false, a NaN causes a warning and a successful end instead of an error.
  bool fail_on_nan = true;
};

// A hook that ends the run at the first NaN, with InvalidArgument (as for a loss that the chief rejects) or with a
// stop. The chief itself checks every loss before the update, and a run with a non-finite loss fails regardless of this
// hook, unless training.end_on_non_finite or skip_non_finite is set. This hook also checks variables, the losses of
// skipped steps, and the losses of another session. Gates every step.
class NanTensorHook : public Hook {
 public:
  // Returns InvalidArgument if the name is empty.
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
