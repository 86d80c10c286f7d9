#include "lockstep/train/hooks/final_ops_hook.h"

#include <utility>

#include "absl/memory/memory.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<FinalOpsHook>> FinalOpsHook::Create(const FinalOpsOptions& options) {
  if (options.variables.empty() && !options.function) {
    return absl::InvalidArgumentError("FinalOpsHook has nothing to evaluate: give variables, a function or both");
  }
  return absl::WrapUnique(new FinalOpsHook(options));
}

absl::Status FinalOpsHook::Evaluate(Session& session) {
  if (!options_.variables.empty()) {
    ASSIGN_OR_RETURN(ReadResult values, session.Read(options_.variables));
    final_values_ = std::move(values);
  }
  return options_.function ? options_.function(session) : absl::OkStatus();
}

absl::Status FinalOpsHook::End(Session& session) {
  const absl::Status status = Evaluate(session);
  if (absl::IsOutOfRange(status)) {
    LOG(WARNING) << "FinalOpsHook: " << status
                 << ". What it evaluates at the end reads input that is at its end. It must"
                 << " not read the input that trains";
  }
  return status;
}

}  // namespace lockstep::train
