#include "lockstep/worker/session/block/check_update.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::Status CheckUpdate(const ParameterLayout& layout, int index, const Elements& value) {
  const v1::VariableSpec& variable = layout.variables()[layout.update_ops()[index].variable].spec;
  if (value.dtype() == variable.dtype()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the update of ", variable.name(), " is ", NameOf(value.dtype()),
                                                 ", the variable is ", NameOf(variable.dtype())));
}

}  // namespace lockstep
