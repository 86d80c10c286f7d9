#include "common/config/field_description.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::EnumValueDescriptor;
using ::google::protobuf::FieldDescriptor;

// Levenshtein's distance: letters inserted, removed or replaced.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// The field that is written most like `name`; null when it would be a guess.
const FieldDescriptor* NearestField(const Descriptor& message, absl::string_view name) {
  const std::string wanted = absl::AsciiStrToLower(name);
  const FieldDescriptor* nearest = nullptr;
  size_t nearest_distance = wanted.size() / 3 + 2;
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string& candidate = message.field(i)->name();
    // A shortened name is near, however much is left out.
    const bool shortened = wanted.size() >= 3 && absl::StartsWith(candidate, wanted);
    const size_t distance = shortened ? 1 : EditDistance(wanted, candidate);
    if (distance < nearest_distance) {
      nearest = message.field(i);
      nearest_distance = distance;
    }
  }
  return nearest;
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
      return "a text";
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
  if (const FieldDescriptor* nearest = NearestField(message, name)) {
    return absl::StrCat(what, ", did you mean \"", nearest->name(), "\"?");
  }
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
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
