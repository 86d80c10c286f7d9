#include "lockstep/train/session/init/init_op.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

InitialValues WithOverrides(InitialValues values, InitialValues overrides) {
  std::set<std::string> overridden;
  for (const NamedTensor& tensor : overrides.values) overridden.insert(tensor.name);
  for (NamedTensor& tensor : values.values) {
    if (overridden.count(tensor.name) == 0) overrides.values.push_back(std::move(tensor));
  }
  overrides.report = absl::StrCat(values.report, values.report.empty() ? "" : "\n", overrides.report);
  return overrides;
}

}  // namespace

absl::StatusOr<InitFunction> InitFunctionOf(const Choice<InitOp>& init_op, std::vector<NamedTensor> init_feed_dict,
                                            InitFunction init_fn) {
  if (!init_op.is_given()) {
    if (init_feed_dict.empty()) return init_fn;
    return absl::InvalidArgumentError("init_feed_dict: is for an init_op, and none is given");
  }
  return InitFunction([init_op = *init_op.Or(absl::nullopt), feed = std::move(init_feed_dict),
                       init_fn = std::move(init_fn)](const v1::ModelSpec& model) -> absl::StatusOr<InitialValues> {
    ASSIGN_OR_RETURN(InitialValues values, init_op(model, feed));
    if (!init_fn) return values;
    ASSIGN_OR_RETURN(InitialValues overrides, init_fn(model));
    return WithOverrides(std::move(values), std::move(overrides));
  });
}

}  // namespace lockstep::train
