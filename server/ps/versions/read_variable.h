#ifndef LOCKSTEP_SERVER_PS_VERSIONS_READ_VARIABLE_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_READ_VARIABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Returns the shape of a variable that ParameterLayout::Create accepted.
Shape ShapeOf(const v1::VariableSpec& spec);

// Returns the destination for reading `key`, the variable's values or an array of the same shape, into `out`, which
// must have room for all elements. Errors: as for CheckStoredVariable.
absl::StatusOr<BundleReader::Place> PlaceOf(const BundleReader& reader, std::string key,
                                            const ParameterLayout::Variable& variable, float* out);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_READ_VARIABLE_H_
