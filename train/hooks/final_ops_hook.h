#ifndef LOCKSTEP_TRAIN_HOOKS_FINAL_OPS_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_FINAL_OPS_HOOK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

struct FinalOpsOptions {
  // The values to read at a successful end, such as {"global_step"}; may be empty.
  std::vector<std::string> variables;
  // Called at a successful end, after the read; may be null. At least one of `variables` and `function` is required.
  std::function<absl::Status(Session&)> function;
};

// A hook that evaluates values or a function after the loop has ended successfully. An error counts as the hook's. The
// log explains an OutOfRange error, because it no longer means the end of the run. Gates no step.
class FinalOpsHook : public Hook {
 public:
  // Returns InvalidArgument if there is nothing to evaluate.
  static absl::StatusOr<std::unique_ptr<FinalOpsHook>> Create(const FinalOpsOptions& options);

  std::string name() const override { return "FinalOpsHook"; }
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override { return false; }

  // The values that were read, and their step; nullopt before the end.
  const absl::optional<ReadResult>& final_values() const { return final_values_; }

 private:
  explicit FinalOpsHook(const FinalOpsOptions& options) : options_(options) {}
  absl::Status Evaluate(Session& session);

  const FinalOpsOptions options_;
  absl::optional<ReadResult> final_values_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_FINAL_OPS_HOOK_H_
