#include "lockstep/common/report/json_message.h"

#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Writer of one message as JSON. Use each object for one message only.
class Writer {
 public:
  explicit Writer(const JsonMessageOptions& options) : options_(options) {}

  void Add(const Message& message) {
    out_ += '{';
    ++depth_;
    bool first = true;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (!Shown(message, field)) continue;
      if (!first) out_ += ',';
      first = false;
      Break();
      absl::StrAppend(&out_, "\"", field.name(), options_.lines ? "\": " : "\":");
      field.is_repeated() ? AddList(message, field) : AddValue(message, field, -1);
    }
    --depth_;
    if (!first) Break();
    out_ += '}';
  }

  std::string Take() { return std::move(out_); }

 private:
  bool Shown(const Message& message, const FieldDescriptor& field) const {
    const Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) return options_.defaults || reflection.FieldSize(message, &field) > 0;
    if (field.has_presence()) return reflection.HasField(message, &field);
    return options_.defaults || reflection.HasField(message, &field);
  }

  void Break() {
    if (options_.lines) absl::StrAppend(&out_, "\n", std::string(depth_, ' '));
  }

  void AddList(const Message& message, const FieldDescriptor& field) {
    const int size = message.GetReflection()->FieldSize(message, &field);
    out_ += '[';
    for (int i = 0; i < size; ++i) {
      if (i > 0) out_ += ',';
      AddValue(message, field, i);
    }
    out_ += ']';
  }

  // Adds the value of a field, or element `i` of a repeated one.
  void AddValue(const Message& message, const FieldDescriptor& field, int i) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
#define LOCKSTEP_GET(type) \
  (i < 0 ? reflection.Get##type(message, &field) : reflection.GetRepeated##type(message, &field, i))
      case FieldDescriptor::CPPTYPE_INT32:
        absl::StrAppend(&out_, LOCKSTEP_GET(Int32));
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        absl::StrAppend(&out_, LOCKSTEP_GET(Int64));
        return;
      case FieldDescriptor::CPPTYPE_UINT32:
        absl::StrAppend(&out_, LOCKSTEP_GET(UInt32));
        return;
      case FieldDescriptor::CPPTYPE_UINT64:
        absl::StrAppend(&out_, LOCKSTEP_GET(UInt64));
        return;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        out_ += JsonNumber(LOCKSTEP_GET(Double));
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        out_ += JsonNumber(LOCKSTEP_GET(Float));
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        out_ += LOCKSTEP_GET(Bool) ? "true" : "false";
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        absl::StrAppend(&out_, "\"", LOCKSTEP_GET(Enum)->name(), "\"");
        return;
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = LOCKSTEP_GET(String);
        out_ += JsonString(field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(text) : text);
        return;
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Add(LOCKSTEP_GET(Message));
#undef LOCKSTEP_GET
    }
  }

  const JsonMessageOptions options_;
  std::string out_;
  size_t depth_ = 0;
};

}  // namespace

std::string JsonMessage(const Message& message, const JsonMessageOptions& options) {
  Writer writer(options);
  writer.Add(message);
  return writer.Take();
}

}  // namespace lockstep
