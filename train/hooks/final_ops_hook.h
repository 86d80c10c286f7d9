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
  // Read at a good end; {"global_step"} and the like. Empty: none.
  std::vector<std::string> variables;
  // Called at a good end, after that. Empty: none. One of both is needed.
  std::function<absl::Status(Session&)> function;
};

// Evaluates something when the loop has ended well. An error is one of the hook; OutOfRange is explained in the log, as
// nobody reads it as the end of the run any more. Gates nothing.
class FinalOpsHook : public Hook {
 public:
  // InvalidArgument when there is nothing to evaluate.
  static absl::StatusOr<std::unique_ptr<FinalOpsHook>> Create(const FinalOpsOptions& options);

  std::string name() const override { return "FinalOpsHook"; }
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override { return false; }

  // What was read, and of which step; nullopt before the end.
  const absl::optional<ReadResult>& final_values() const { return final_values_; }

 private:
  explicit FinalOpsHook(const FinalOpsOptions& options) : options_(options) {}
  absl::Status Evaluate(Session& session);

  const FinalOpsOptions options_;
  absl::optional<ReadResult> final_values_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_FINAL_OPS_HOOK_H_
