#include "lockstep/common/config/text/text_proto.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/config/text/field_description.h"

namespace lockstep {
namespace {

// Maximum depth of nested blocks. Optimizer groups can be nested, so without a limit a text could exhaust the stack.
constexpr int kMostNested = 100;

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::TextFormat;

// An error collector that keeps only the first error, because later errors follow from it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (seen_) return;
    seen_ = true;
    line_ = line;
    column_ = column;
    message_ = message;
  }

  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }

 private:
  bool seen_ = false;
  int line_ = 0;
  int column_ = 0;
  std::string message_;
};

// Returns the offset of protobuf's (line, column), both counted from 0, where a tab advances to the next multiple of
// eight.
size_t OffsetOf(absl::string_view text, int line, int column) {
  size_t offset = 0;
  for (; line > 0; --line) {
    const size_t end = text.find('\n', offset);
    if (end == absl::string_view::npos) break;
    offset = end + 1;
  }
  for (int at = 0; at < column && offset < text.size() && text[offset] != '\n'; ++offset) {
    at += text[offset] == '\t' ? 8 - at % 8 : 1;
  }
  return offset;
}

// Returns the line and the column of an offset, both counted from 1, such as "12:5".
std::string LineAndColumn(absl::string_view text, size_t offset) {
  const absl::string_view before = text.substr(0, offset);
  const size_t line_start = before.rfind('\n') == absl::string_view::npos ? 0 : before.rfind('\n') + 1;
  return absl::StrCat(std::count(before.begin(), before.end(), '\n') + 1, ":", offset - line_start + 1);
}

// The field at a place in a message's text. It is found by following names and braces, because protobuf's error
// messages do not name it.
class Place {
 public:
  Place(absl::string_view text, size_t offset, const Descriptor* message) : text_(text), messages_{message} {
    while (at_ < std::min(offset, text.size())) Step();
  }

  // The message that contains the place; null inside an unknown field.
  const Descriptor* message() const { return messages_.back(); }
  // Returns the innermost enclosing message, other than message(), that has such a field, or null.
  const Descriptor* OuterMessageWith(absl::string_view name) const {
    for (size_t i = messages_.size() - 1; i-- > 0;) {
      if (messages_[i] != nullptr && messages_[i]->FindFieldByName(std::string(name)) != nullptr) return messages_[i];
    }
    return nullptr;
  }
  // The field whose value contains or precedes the place; null if there is none or it is unknown.
  const FieldDescriptor* field() const { return field_; }
  absl::string_view name() const { return name_; }
  size_t name_offset() const { return name_offset_; }

  // True if a value of the field is expected at the place.
  bool in_value() const { return in_value_ || in_list_; }
  // The path of the field, such as "optimizer.adam.beta1", and the same without the last part, "optimizer.adam".
  std::string path() const { return absl::StrCat(parent_path(), parents_.empty() || name_.empty() ? "" : ".", name_); }
  std::string parent_path() const { return absl::StrJoin(parents_, "."); }

 private:
  // Reads one token.
  void Step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      SkipString(c);
    } else if (absl::ascii_isalpha(c) || c == '_') {
      ReadWord();
    } else if (absl::ascii_isdigit(c)) {
      while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '.')) ++at_;
      in_value_ = false;
    } else {
      ReadPunctuation(c);
      ++at_;
    }
  }

  void SkipString(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
    in_value_ = false;
  }

  void ReadWord() {
    const size_t start = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    if (in_value_ || in_list_) {
      in_value_ = false;
      return;
    }
    name_ = text_.substr(start, at_ - start);
    name_offset_ = start;
    field_ = message() == nullptr ? nullptr : message()->FindFieldByName(std::string(name_));
    // A block does not need a colon, so its value may follow the name directly.
    in_value_ = field_ != nullptr && field_->message_type() != nullptr;
  }

  void ReadPunctuation(char c) {
    if (c == ':') {
      in_value_ = true;
    } else if (c == '[' || c == ']') {
      in_list_ = c == '[';
      in_value_ = false;
    } else if (c == '{' || c == '<') {
      messages_.push_back(field_ == nullptr ? nullptr : field_->message_type());
      parents_.push_back(name_);
      lists_.push_back(in_list_);
      name_ = {};
      field_ = nullptr;
      in_value_ = in_list_ = false;
    } else if ((c == '}' || c == '>') && messages_.size() > 1) {
      name_ = parents_.back();
      messages_.pop_back();
      parents_.pop_back();
      field_ = message() == nullptr ? nullptr : message()->FindFieldByName(std::string(name_));
      in_list_ = lists_.back();
      lists_.pop_back();
    }
  }

  const absl::string_view text_;
  size_t at_ = 0;
  bool in_value_ = false;
  bool in_list_ = false;
  std::vector<const Descriptor*> messages_;
  std::vector<absl::string_view> parents_;
  std::vector<bool> lists_;
  const FieldDescriptor* field_ = nullptr;
  absl::string_view name_;
  size_t name_offset_ = 0;
};

// Returns the text at the place, to quote it: a word, a number, a quoted string or one character.
absl::string_view WordAt(absl::string_view text, size_t offset) {
  text = text.substr(std::min(offset, text.size()));
  if (text.empty()) return "the end of the file";
  size_t size = 0;
  if (text[0] == '"' || text[0] == '\'') {
    size = std::min(text.find(text[0], 1), text.find('\n', 1));
    return text.substr(0, size == absl::string_view::npos ? size : size + 1);
  }
  const auto in_word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+'; };
  while (size < text.size() && in_word(text[size])) ++size;
  return text.substr(0, std::max<size_t>(size, 1));
}

// Returns true for errors that protobuf reports only after it has read a value of the wrong type.
bool IsComplaintOfValueBefore(absl::string_view message) {
  return absl::StartsWith(message, "Unknown enumeration value") ||
         absl::StartsWith(message, "Invalid value for boolean");
}

// Returns one line that states the place, the field, the problem and a valid alternative.
std::string Explain(absl::string_view text, const FirstError& error, const Descriptor* root, absl::string_view file) {
  const absl::string_view message = absl::StripSuffix(error.message(), ".");
  const size_t offset = OffsetOf(text, error.line(), error.column());
  const Place place(text, offset, root);
  const auto line = [&](size_t at, absl::string_view path, absl::string_view what) {
    return absl::StrCat(file, ":", LineAndColumn(text, at), ": ", path, path.empty() ? "" : ": ", what);
  };
  if (absl::StrContains(message, "recursion limit")) {
    return line(offset, "", absl::StrCat("there are more than ", kMostNested, " blocks within one another"));
  }
  if (absl::StrContains(message, "has no field named") && place.message() != nullptr) {
    if (const Descriptor* outer = place.OuterMessageWith(place.name())) {
      return line(place.name_offset(), place.path(),
                  absl::StrCat(place.message()->name(), " has no field \"", place.name(), "\", but ", outer->name(),
                               " around it has; is a \"}\" missing before it?"));
    }
    return line(place.name_offset(), place.path(), DescribeUnknownField(*place.message(), place.name()));
  }
  if (absl::StrContains(message, "is specified")) return line(place.name_offset(), place.path(), message);
  if (place.field() != nullptr && (place.in_value() || IsComplaintOfValueBefore(message))) {
    const size_t value = text.find_first_not_of(" \t\r\n:", place.name_offset() + place.name().size());
    const size_t at = place.in_value() ? offset : std::min(value, offset);
    return line(at, place.path(),
                absl::StrCat("takes ", DescribeType(*place.field()), ", such as ", ExampleValue(*place.field()),
                             ", not ", WordAt(text, at)));
  }
  if (absl::StartsWith(message, "Expected identifier, got")) {
    return line(offset, place.parent_path(),
                absl::StrCat("expected a field's name", place.parent_path().empty() ? "" : " or \"}\"", ", not ",
                             WordAt(text, offset)));
  }
  return line(offset, place.path(), message);
}

}  // namespace

absl::Status ParseTextProto(absl::string_view text, absl::string_view file, Message* message,
                            TextFormat::ParseInfoTree* lines) {
  FirstError error;
  TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNested);
  parser.RecordErrorsTo(&error);
  if (lines != nullptr) parser.WriteLocationsTo(lines);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(Explain(text, error, message->GetDescriptor(), file));
}

std::string PrintTextProto(const Message& message) {
  std::string text;
  TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace lockstep
