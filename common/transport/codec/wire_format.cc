#include "lockstep/common/transport/codec/wire_format.h"

#include <algorithm>
#include <cstring>

#include "glog/logging.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {
namespace {

// Wire types of the protobuf encoding.
enum : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Maximum encoded size of a tag and a number, in bytes.
constexpr size_t kMaxFieldBytes = 15;
// Maximum size, in bytes, of a tensor that is faster to copy than to send as a slice of its own.
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

WireReader::WireReader(absl::Span<const absl::string_view> runs) : runs_(runs) {
  for (const absl::string_view run : runs_) left_ += run.size();
}

template <typename F>
bool WireReader::Consume(uint64_t n, F f) {
  if (n > left_) return false;
  left_ -= n;
  while (n > 0) {
    const absl::string_view rest = runs_[run_].substr(at_);
    const size_t take = static_cast<size_t>(std::min<uint64_t>(n, rest.size()));
    if (take > 0) f(rest.substr(0, take));
    n -= take;
    at_ += take;
    if (at_ == runs_[run_].size()) {
      ++run_;
      at_ = 0;
    }
  }
  return true;
}

inline bool WireReader::ReadByte(uint8_t* byte) {
  if (left_ == 0) return false;
  while (at_ == runs_[run_].size()) {
    ++run_;
    at_ = 0;
  }
  *byte = static_cast<uint8_t>(runs_[run_][at_++]);
  --left_;
  return true;
}

template <typename NextByte>
bool WireReader::AssembleVarint(uint64_t* value, NextByte next_byte) {
  uint64_t assembled = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    uint8_t byte;
    if (!next_byte(&byte)) return false;
    if (shift == 63 && byte > 1) return false;
    assembled |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      *value = assembled;
      return true;
    }
  }
  return false;
}

bool WireReader::ReadLongVarint(uint64_t* value) {
  constexpr size_t kMaxBytes = 10;
  if (run_ == runs_.size() || runs_[run_].size() - at_ < kMaxBytes) {
    return AssembleVarint(value, [this](uint8_t* byte) { return ReadByte(byte); });
  }
  // The varint cannot extend beyond this run.
  const char* const begin = runs_[run_].data() + at_;
  const char* end = begin;
  const bool ok = AssembleVarint(value, [&end](uint8_t* byte) {
    *byte = static_cast<uint8_t>(*end++);
    return true;
  });
  at_ += static_cast<size_t>(end - begin);
  left_ -= static_cast<uint64_t>(end - begin);
  return ok;
}

bool WireReader::ReadTag(uint32_t* field, uint32_t* wire_type) {
  uint64_t tag;
  if (!ReadVarint(&tag) || tag > UINT32_MAX || (tag >> 3) == 0) return false;
  *field = static_cast<uint32_t>(tag >> 3);
  *wire_type = static_cast<uint32_t>(tag & 7);
  return true;
}

bool WireReader::ReadString(uint64_t n, std::string* out) {
  out->clear();
  return Consume(n, [out](absl::string_view run) { out->append(run.data(), run.size()); });
}

bool WireReader::ReadChunks(uint64_t n, FloatChunks* out) {
  return Consume(n, [out](absl::string_view run) { out->Append(run); });
}

bool WireReader::ReadRuns(uint64_t n, Runs* out) {
  return Consume(n, [out](absl::string_view run) { out->push_back(run); });
}

bool WireReader::Skip(uint64_t n) {
  return Consume(n, [](absl::string_view) {});
}

bool WireReader::SkipField(uint32_t wire_type) {
  uint64_t value;
  switch (wire_type) {
    case kVarint:
      return ReadVarint(&value);
    case kFixed64:
      return Skip(8);
    case kLengthDelimited:
      return ReadVarint(&value) && Skip(value);
    case kFixed32:
      return Skip(4);
    default:
      return false;
  }
}

uint8_t* MessageWriter::Room(size_t n) {
  if (small_.size() - used_ < n) small_.resize(std::max(2 * small_.size(), used_ + n));
  return small_.data() + used_;
}

void MessageWriter::Append(const void* bytes, size_t n) {
  std::memcpy(Room(n), bytes, n);
  used_ += n;
}

void MessageWriter::AddNumber(int field, uint64_t value) { EndAt(WriteNumber(field, value, Room(kMaxFieldBytes))); }

void MessageWriter::AddFixed64(int field, uint64_t value) {
  if (value == 0) return;
  uint8_t* const out = WriteTag(field, WireFormatLite::WIRETYPE_FIXED64, Room(kMaxFieldBytes));
  EndAt(CodedOutputStream::WriteLittleEndian64ToArray(value, out));
}

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

// The content is in shared memory, so the message contains none of its bytes.
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
