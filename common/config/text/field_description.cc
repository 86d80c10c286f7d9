#include "lockstep/common/config/text/field_description.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/flags/nearest_name.h"

namespace lockstep {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::EnumValueDescriptor;
using ::google::protobuf::FieldDescriptor;

std::vector<std::string> FieldNames(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

}  // namespace

std::string DescribeType(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "an integer";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "an integer, 0 or more";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      for (int i = 0; i < field.enum_type()->value_count(); ++i) names.push_back(field.enum_type()->value(i)->name());
      return absl::StrCat("one of ", absl::StrJoin(names, ", "));
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return "a string";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("a block of ", field.message_type()->name());
  }
  return "a value";
}

std::string ExampleValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "0.1";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor& type = *field.enum_type();
      return type.value(type.value_count() - 1)->name();
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return "\"name\"";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{ }";
    default:
      return "1000";
  }
}

std::string DescribeUnknownField(const Descriptor& message, absl::string_view name) {
  const std::string what = absl::StrCat(message.name(), " has no field \"", name, "\"");
  const std::vector<std::string> names = FieldNames(message);
  const std::string nearest = NearestName(name, names);
  if (!nearest.empty()) return absl::StrCat(what, ", did you mean \"", nearest, "\"?");
  if (names.empty()) return absl::StrCat(what, ", nor any other");
  return absl::StrCat(what, ", it has: ", absl::StrJoin(names, ", "));
}

const EnumValueDescriptor* FindEnumValue(const EnumDescriptor& type, absl::string_view name) {
  for (int i = 0; i < type.value_count(); ++i) {
    if (absl::EqualsIgnoreCase(type.value(i)->name(), name)) return type.value(i);
  }
  return nullptr;
}

}  // namespace lockstep
