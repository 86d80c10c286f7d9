#include "lockstep/server/ps/versions/read_variable.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"

namespace lockstep {
namespace {

absl::Span<char> BytesOf(const ParameterLayout::Variable& variable, float* elements) {
  return absl::MakeSpan(reinterpret_cast<char*>(elements), variable.bytes());
}

}  // namespace

Shape ShapeOf(const v1::VariableSpec& spec) {
  return *Shape::Create(std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
}

absl::StatusOr<BundleReader::Place> PlaceOf(const BundleReader& reader, std::string key,
                                            const ParameterLayout::Variable& variable, float* out) {
  RETURN_IF_ERROR(CheckStoredVariable(reader, key, variable.spec.dtype(), ShapeOf(variable.spec)));
  return BundleReader::Place{std::move(key), BytesOf(variable, out)};
}

}  // namespace lockstep
