#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

// Words for error messages about the fields of a configuration. Pure functions.

// "an integer", "a number", "true or false", "one of NONE, RELU", "a string", "a block of Adam".
std::string DescribeType(const google::protobuf::FieldDescriptor& field);

// A value that the field takes, as text format has it: "1000", "0.1", "true", "RELU", "\"name\"", "{ }".
std::string ExampleValue(const google::protobuf::FieldDescriptor& field);

// `OptimizerConfig has no field "adm", did you mean "adam"?`, or the list of its fields when none is near.
std::string DescribeUnknownField(const google::protobuf::Descriptor& message, absl::string_view name);

// The value of the enum that is written like `name`, whatever the case; null when there is none.
const google::protobuf::EnumValueDescriptor* FindEnumValue(const google::protobuf::EnumDescriptor& type,
                                                           absl::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_FIELD_DESCRIPTION_H_
