#include "lockstep/common/transport/codec/bounded_parse.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/wire_format_lite.h"
#include "lockstep/common/transport/codec/wire_format.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Memory that an element takes in addition to its bytes, including the slack of growing arrays, rounded up.
constexpr uint64_t kMessageBytes = 160;
constexpr uint64_t kStringBytes = 64;
constexpr uint64_t kNumberBytes = 16;
constexpr uint64_t kUnknownFieldBytes = 96;
// Upper bound on the memory per byte of a message. The worst case is an empty element, which takes two bytes.
constexpr uint64_t kMostPerByte = kMessageBytes / 2;
// protobuf's own limit.
constexpr int kMaxDepth = 100;

// Returns the field that protobuf parses for this number and wire type, or null if protobuf treats it as an unknown
// field.
const FieldDescriptor* FieldFor(const Descriptor& type, uint32_t number, uint32_t wire_type) {
  const FieldDescriptor* const field = type.FindFieldByNumber(static_cast<int>(number));
  if (field == nullptr) return nullptr;
  const auto own = WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field->type()));
  if (wire_type == own) return field;
  return field->is_packable() && wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED ? field : nullptr;
}

// Adds to `*bytes` the memory needed to parse the next `length` bytes as a message of this type. Returns false if they
// are not such a message, or if the total exceeds `limit`.
bool Measure(const Descriptor& type, uint64_t length, int depth, uint64_t limit, WireReader* reader, uint64_t* bytes) {
  if (depth > kMaxDepth || length > reader->left()) return false;
  const uint64_t end = reader->left() - length;
  while (reader->left() > end) {
    uint32_t number, wire_type;
    if (!reader->ReadTag(&number, &wire_type)) return false;
    const FieldDescriptor* const field = FieldFor(type, number, wire_type);
    if (wire_type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      *bytes += field == nullptr ? kUnknownFieldBytes : field->is_repeated() ? kNumberBytes : 0;
      if (*bytes > limit || !reader->SkipField(wire_type)) return false;
      continue;
    }
    uint64_t size;
    if (!reader->ReadVarint(&size) || size > reader->left()) return false;
    const Descriptor* const element = field == nullptr ? nullptr : field->message_type();
    if (element != nullptr) {
      *bytes += kMessageBytes;
      if (*bytes > limit || !Measure(*element, size, depth + 1, limit, reader, bytes)) return false;
      continue;
    }
    *bytes += field == nullptr       ? kUnknownFieldBytes + size
              : field->is_packable() ? kNumberBytes * size
                                     : kStringBytes + size;
    if (*bytes > limit || !reader->Skip(size)) return false;
  }
  return reader->left() == end;
}

}  // namespace

absl::Status ParseBounded(absl::string_view bytes, uint64_t limit, google::protobuf::Message* message) {
  const auto malformed = [message] {
    return absl::InvalidArgumentError(absl::StrCat("the bytes are no ", message->GetDescriptor()->name()));
  };
  if (bytes.size() > limit / kMostPerByte) {
    WireReader reader(absl::MakeConstSpan(&bytes, 1));
    uint64_t measured = 0;
    if (!Measure(*message->GetDescriptor(), bytes.size(), 0, limit, &reader, &measured)) {
      if (measured <= limit) return malformed();
      return absl::ResourceExhaustedError(absl::StrCat("a ", message->GetDescriptor()->name(), " of ", bytes.size(),
                                                       " bytes takes more than ", limit, " bytes of memory"));
    }
  }
  if (bytes.size() > INT32_MAX || !message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return malformed();
  }
  return absl::OkStatus();
}

}  // namespace lockstep
