#include "lockstep/worker/session/block/check_update.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::Status CheckUpdate(const ParameterLayout& layout, int index, const Elements& value) {
  const ParameterLayout::Variable& variable = layout.variables()[layout.update_ops()[index].variable];
  const std::string& name = variable.spec.name();
  if (value.dtype() != variable.spec.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("the update of ", name, " is ", NameOf(value.dtype()),
                                                   ", the variable is ", NameOf(variable.spec.dtype())));
  }
  if (value.bytes().size() == variable.bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the update of ", name, " has ", value.size(), " elements, the variable has ", variable.elements));
}

}  // namespace lockstep
