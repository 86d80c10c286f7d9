#include "lockstep/server/ps/read_variable.h"

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/stored_variable.h"

namespace lockstep {

Shape ShapeOf(const v1::VariableSpec& spec) {
  return *Shape::Create(std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
}

absl::Status ReadVariable(const TensorReader& reader, absl::string_view key, const ParameterLayout::Variable& variable,
                          float* out) {
  RETURN_IF_ERROR(CheckStoredVariable(reader, key, v1::DT_FLOAT, ShapeOf(variable.spec)));
  return ReadElements(reader, key, variable, out);
}

absl::Status ReadElements(const TensorReader& reader, absl::string_view key, const ParameterLayout::Variable& variable,
                          float* out) {
  return reader.ReadInto(
      key, absl::MakeSpan(reinterpret_cast<char*>(out), static_cast<size_t>(variable.elements) * sizeof(float)));
}

}  // namespace lockstep
