#include "lockstep/common/transport/codec/message_writer.h"

#include <algorithm>
#include <cstring>

#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Maximum size of a tag and a number.
constexpr size_t kMaxFieldBytes = 15;
// Copying a tensor of at most this size takes less time than a slice of its own.
constexpr size_t kCopiedBytes = 512;

uint8_t* WriteTag(int field, WireFormatLite::WireType type, uint8_t* out) {
  return CodedOutputStream::WriteTagToArray(static_cast<uint32_t>(field) << 3 | type, out);
}

uint8_t* WriteNumber(int field, uint64_t value, uint8_t* out) {
  if (value == 0) return out;
  return CodedOutputStream::WriteVarint64ToArray(value, WriteTag(field, WireFormatLite::WIRETYPE_VARINT, out));
}

// Writes the tag and length that precede `bytes` bytes of a message, a string or a tensor.
uint8_t* WriteLength(int field, uint64_t bytes, uint8_t* out) {
  return CodedOutputStream::WriteVarint64ToArray(bytes,
                                                 WriteTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, out));
}

void ReleaseOwner(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

}  // namespace

uint8_t* MessageWriter::Room(size_t n) {
  if (small_.size() - used_ < n) small_.resize(std::max(2 * small_.size(), used_ + n));
  return small_.data() + used_;
}

void MessageWriter::Append(const void* bytes, size_t n) {
  std::memcpy(Room(n), bytes, n);
  used_ += n;
}

void MessageWriter::AddNumber(int field, uint64_t value) { EndAt(WriteNumber(field, value, Room(kMaxFieldBytes))); }

void MessageWriter::AddMessage(int field, const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  uint8_t* const out = WriteLength(field, bytes, Room(kMaxFieldBytes + bytes));
  EndAt(message.SerializeWithCachedSizesToArray(out));
}

void MessageWriter::AddBytes(int field, absl::string_view bytes) {
  EndAt(WriteLength(field, bytes.size(), Room(kMaxFieldBytes)));
  Append(bytes.data(), bytes.size());
}

// Writes everything that precedes the content, including the tag and length of the piece and of the content.
void MessageWriter::AddPieceHeader(int field, const StepPiece& piece) {
  using Piece = v1::TensorPiece;
  uint8_t fields[6 * kMaxFieldBytes];
  uint8_t* end = WriteNumber(Piece::kVariableFieldNumber, static_cast<uint64_t>(piece.variable), fields);
  end = WriteNumber(Piece::kOffsetFieldNumber, static_cast<uint64_t>(piece.offset), end);
  if (piece.content.type() != v1::DT_FLOAT) end = WriteNumber(Piece::kDtypeFieldNumber, piece.content.type(), end);
  end = WriteNumber(Piece::kSlotFieldNumber, static_cast<uint64_t>(piece.slot), end);
  end = WriteNumber(Piece::kSparseFieldNumber, piece.sparse ? 1 : 0, end);
  end = WriteLength(Piece::kContentFieldNumber, piece.content.bytes(), end);
  const auto size = static_cast<size_t>(end - fields);
  EndAt(WriteLength(field, size + piece.content.bytes(), Room(kMaxFieldBytes)));
  Append(fields, size);
}

// The content lies in shared memory: the message has no bytes of it.
void MessageWriter::AddSharedPiece(int field, const StepPiece& piece) {
  v1::TensorPiece small;
  small.set_variable(static_cast<uint32_t>(piece.variable));
  small.set_offset(static_cast<uint64_t>(piece.offset));
  small.mutable_shared()->set_offset(piece.shared->offset);
  small.mutable_shared()->set_bytes(piece.shared->bytes);
  AddMessage(field, small);
}

void MessageWriter::AddPiece(int field, const StepPiece& piece, const std::shared_ptr<const void>& owner) {
  if (piece.shared) return AddSharedPiece(field, piece);
  AddPieceHeader(field, piece);
  const size_t bytes = piece.content.bytes();
  if (bytes == 0) return;
  const char* const content = piece.content.SingleRun();
  CHECK(content != nullptr) << "a tensor to be sent lies in several pieces";
  if (piece.sparse || bytes <= kCopiedBytes) return Append(content, bytes);
  Flush();
  slices_.emplace_back(const_cast<char*>(content), bytes, ReleaseOwner, new std::shared_ptr<const void>(owner));
}

void MessageWriter::Flush() {
  if (used_ > 0) slices_.emplace_back(small_.data(), used_);
  used_ = 0;
}

grpc::ByteBuffer MessageWriter::Finish() {
  Flush();
  return grpc::ByteBuffer(slices_.data(), slices_.size());
}

}  // namespace lockstep
