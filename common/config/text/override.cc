#include "lockstep/common/config/text/override.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "google/protobuf/descriptor.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/text/field_description.h"
#include "lockstep/common/config/text/text_proto.h"

namespace lockstep {
namespace {

using ::google::protobuf::EnumValueDescriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

// A part of a path, such as "layer[2]".
struct Part {
  absl::string_view name;
  // The text in the brackets, if any.
  absl::optional<absl::string_view> index;
};

// Splits "a.b[c.d].e" into parts; returns nullopt if a bracket or dot is misplaced.
absl::optional<std::vector<Part>> SplitPath(absl::string_view path) {
  std::vector<Part> parts;
  while (true) {
    const size_t end = path.find_first_of(".[");
    Part part{path.substr(0, end), absl::nullopt};
    path = end == absl::string_view::npos ? "" : path.substr(end);
    if (absl::ConsumePrefix(&path, "[")) {
      const size_t close = path.find(']');
      if (close == absl::string_view::npos) return absl::nullopt;
      part.index = path.substr(0, close);
      path = path.substr(close + 1);
    }
    parts.push_back(part);
    if (path.empty()) return parts;
    if (!absl::ConsumePrefix(&path, ".")) return absl::nullopt;
  }
}

// Returns the position of the first '=' outside brackets, which follows the path. A map key in brackets may contain
// '='.
size_t FindEquals(absl::string_view override) {
  bool in_brackets = false;
  for (size_t i = 0; i < override.size(); ++i) {
    if (override[i] == '[') in_brackets = true;
    if (override[i] == ']') in_brackets = false;
    if (override[i] == '=' && !in_brackets) return i;
  }
  return absl::string_view::npos;
}

std::string QuotedText(absl::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.front() == text.back();
  return absl::StrCat("\"", absl::CEscape(quoted ? text.substr(1, text.size() - 2) : text), "\"");
}

// Returns the value in text format, or nullopt if it does not fit the field's type. Always returns nullopt for blocks.
absl::optional<std::string> ScalarLiteral(const FieldDescriptor& field, absl::string_view value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t number;
      if (absl::SimpleAtoi(value, &number)) return absl::StrCat(number);
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number;
      if (absl::SimpleAtoi(value, &number)) return absl::StrCat(number);
      break;
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double number;
      // Keep the digits as given, because the text format parser reads them again, as float or double.
      if (absl::SimpleAtod(value, &number) && std::isfinite(number)) {
        return std::string(absl::StripPrefix(absl::StripAsciiWhitespace(value), "+"));
      }
      break;
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool truth;
      if (absl::SimpleAtob(value, &truth)) return truth ? "true" : "false";
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      if (const EnumValueDescriptor* found = FindEnumValue(*field.enum_type(), value)) return found->name();
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      return QuotedText(value);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return absl::nullopt;
}

// Returns the text between the braces: "a: 1" for "{ a: 1 }" and "a: 1", and "" for "".
absl::string_view BlockBody(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  if (absl::StartsWith(value, "{") && absl::EndsWith(value, "}")) value = value.substr(1, value.size() - 2);
  return value;
}

// An override to apply to a message. Every error is one line that does not repeat the override.
class Assignment {
 public:
  Assignment(absl::string_view path, absl::string_view value) : path_(path), value_(value) {}

  absl::Status Apply(Message* message) const {
    const auto parts = SplitPath(path_);
    if (!parts.has_value()) {
      return absl::InvalidArgumentError("the path is malformed, must be like model.layer[0].dense.units");
    }
    for (size_t i = 0; i < parts->size(); ++i) {
      const Part& part = (*parts)[i];
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(std::string(part.name));
      if (field == nullptr) {
        return absl::InvalidArgumentError(DescribeUnknownField(*message->GetDescriptor(), part.name));
      }
      if (field->is_map() && (part.index.has_value() || i + 2 == parts->size())) {
        if (i + (part.index.has_value() ? 1 : 2) != parts->size()) return TypeError(*field);
        return SetMapEntry(*field, part.index.has_value() ? *part.index : parts->back().name, message);
      }
      if (part.index.has_value() && !field->is_repeated()) {
        return absl::InvalidArgumentError(
            absl::StrCat(field->name(), " is not a list, it takes no [", *part.index, "]"));
      }
      if (i + 1 == parts->size()) return Set(*field, part.index, message);
      ASSIGN_OR_RETURN(message, Descend(*field, part.index, message));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TypeError(const FieldDescriptor& field) const {
    const bool is_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    return absl::InvalidArgumentError(absl::StrCat(path_, " takes ", DescribeType(field), ", such as ", path_, "=",
                                                   is_text ? "name" : ExampleValue(field), ", not \"", value_, "\""));
  }

  // Returns an index from 0 to `size`. An index equal to `size`, or an empty text, means that an element is appended.
  absl::StatusOr<int> ParseIndex(const FieldDescriptor& field, absl::string_view text, int size) const {
    if (text.empty()) return size;
    int index;
    if (absl::SimpleAtoi(text, &index) && index >= 0 && index <= size) return index;
    return absl::InvalidArgumentError(absl::StrCat(field.name(), "[", text, "] does not exist, ", field.name(), " has ",
                                                   size, " elements; [", size, "] appends one"));
  }

  // Returns the block within `message` through which the path leads, and creates it if it is absent.
  absl::StatusOr<Message*> Descend(const FieldDescriptor& field, absl::optional<absl::string_view> index,
                                   Message* message) const {
    const Reflection& reflection = *message->GetReflection();
    if (field.message_type() == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(field.name(), " takes ", DescribeType(field), ", it has no fields"));
    }
    if (!field.is_repeated()) return reflection.MutableMessage(message, &field);
    const int size = reflection.FieldSize(*message, &field);
    if (!index.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field.name(), " is a list of ", size, " elements, say which: ", field.name(), "[0]"));
    }
    ASSIGN_OR_RETURN(const int i, ParseIndex(field, *index, size));
    if (i == size) return reflection.AddMessage(message, &field);
    return reflection.MutableRepeatedMessage(message, &field, i);
  }

  absl::Status SetMapEntry(const FieldDescriptor& field, absl::string_view key, Message* message) const {
    const auto value = ScalarLiteral(*field.message_type()->map_value(), value_);
    const auto key_literal = ScalarLiteral(*field.message_type()->map_key(), key);
    if (!value.has_value() || !key_literal.has_value()) return TypeError(field);
    return Merge(absl::StrCat(field.name(), " { key: ", *key_literal, " value: ", *value, " }"), message);
  }

  absl::Status Set(const FieldDescriptor& field, absl::optional<absl::string_view> index, Message* message) const {
    const Reflection& reflection = *message->GetReflection();
    if (!index.has_value()) {
      ASSIGN_OR_RETURN(const std::string text, field.is_repeated() ? ListText(field) : ElementText(field, value_));
      reflection.ClearField(message, &field);
      return Merge(text, message);
    }
    const int size = reflection.FieldSize(*message, &field);
    ASSIGN_OR_RETURN(const int i, ParseIndex(field, *index, size));
    ASSIGN_OR_RETURN(const std::string text, ElementText(field, value_));
    RETURN_IF_ERROR(Merge(text, message));
    if (i == size) return absl::OkStatus();
    reflection.SwapElements(message, &field, i, size);
    reflection.RemoveLast(message, &field);
    return absl::OkStatus();
  }

  // Returns the field and its value in text format: "steps: 10" or "adam { beta1: 0.8 }".
  absl::StatusOr<std::string> ElementText(const FieldDescriptor& field, absl::string_view value) const {
    if (field.message_type() != nullptr) return absl::StrCat(field.name(), " { ", BlockBody(value), "\n}");
    const auto literal = ScalarLiteral(field, value);
    if (!literal.has_value()) return TypeError(field);
    return absl::StrCat(field.name(), ": ", *literal, "\n");
  }

  // Returns the elements of "a,b" or "[a, b]", one per line.
  absl::StatusOr<std::string> ListText(const FieldDescriptor& field) const {
    if (field.message_type() != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " is a list of blocks, set one of them: ", path_, "[0]=", ExampleValue(field)));
    }
    absl::string_view list = absl::StripAsciiWhitespace(value_);
    if (absl::StartsWith(list, "[") && absl::EndsWith(list, "]")) list = list.substr(1, list.size() - 2);
    std::string text;
    if (list.empty()) return text;
    for (const absl::string_view element : absl::StrSplit(list, ',')) {
      ASSIGN_OR_RETURN(const std::string line, ElementText(field, absl::StripAsciiWhitespace(element)));
      text += line;
    }
    return text;
  }

  // Parses fields of `message`'s type and merges them into it. Singular fields are set; repeated ones are appended.
  absl::Status Merge(absl::string_view text, Message* message) const {
    const std::unique_ptr<Message> fields(message->New());
    RETURN_IF_ERROR(ParseTextProto(text, "value", fields.get()));
    message->MergeFrom(*fields);
    return absl::OkStatus();
  }

  const absl::string_view path_;
  const absl::string_view value_;
};

}  // namespace

absl::Status ApplyOverride(absl::string_view override, Message* message) {
  const size_t equals = FindEquals(override);
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("override \"", override, "\" is not path=value, such as training.steps=1000"));
  }
  const std::unique_ptr<Message> changed(message->New());
  changed->CopyFrom(*message);
  const Assignment assignment(absl::StripAsciiWhitespace(override.substr(0, equals)), override.substr(equals + 1));
  const absl::Status status = assignment.Apply(changed.get());
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("override \"", override, "\": ", status.message()));
  }
  message->GetReflection()->Swap(message, changed.get());
  return absl::OkStatus();
}

}  // namespace lockstep
