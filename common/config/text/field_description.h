#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

// Phrases for error messages about the fields of a configuration. Pure functions.

// Returns a description of the field's type: "an integer", "a number", "true or false", "one of NONE, RELU", "a
// string", "a block of Adam".
std::string DescribeType(const google::protobuf::FieldDescriptor& field);

// Returns a valid value of the field in text format: "1000", "0.1", "true", "RELU", "\"name\"", "{ }".
std::string ExampleValue(const google::protobuf::FieldDescriptor& field);

// Returns `OptimizerConfig has no field "adm", did you mean "adam"?`, or lists its fields if none is similar.
std::string DescribeUnknownField(const google::protobuf::Descriptor& message, absl::string_view name);

// Returns the enum value whose name equals `name`, ignoring case, or null.
const google::protobuf::EnumValueDescriptor* FindEnumValue(const google::protobuf::EnumDescriptor& type,
                                                           absl::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_
