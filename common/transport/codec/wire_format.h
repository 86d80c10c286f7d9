#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_FORMAT_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/float_chunks.h"

namespace lockstep {

// A reader of the protobuf wire format whose bytes may be spread over several runs, which it does not join. Every read
// returns false if the bytes end early or are malformed. Not thread-safe.
class WireReader {
 public:
  // `runs` must outlive the reader.
  explicit WireReader(absl::Span<const absl::string_view> runs);

  // Number of bytes not yet read.
  uint64_t left() const { return left_; }

  bool ReadVarint(uint64_t* value) {
    // Fast path: most varints are a single byte, within the current run.
    if (run_ == runs_.size() || at_ == runs_[run_].size()) return ReadLongVarint(value);
    const auto byte = static_cast<uint8_t>(runs_[run_][at_]);
    if ((byte & 0x80) != 0) return ReadLongVarint(value);
    ++at_;
    --left_;
    *value = byte;
    return true;
  }
  // Reads a field's tag.
  bool ReadTag(uint32_t* field, uint32_t* wire_type);
  // Reads and copies `n` bytes.
  bool ReadString(uint64_t n, std::string* out);
  // Reads `n` bytes by reference, without copying them.
  bool ReadChunks(uint64_t n, FloatChunks* out);
  // Reads `n` bytes by appending their location to a list.
  using Runs = absl::InlinedVector<absl::string_view, 4>;
  bool ReadRuns(uint64_t n, Runs* out);
  // Skips the value of a field of this wire type.
  bool SkipField(uint32_t wire_type);
  bool Skip(uint64_t n);

 private:
  bool ReadByte(uint8_t* byte);
  bool ReadLongVarint(uint64_t* value);
  template <typename NextByte>
  static bool AssembleVarint(uint64_t* value, NextByte next_byte);
  // Calls f(run) for each part of the next n bytes and moves past them.
  template <typename F>
  bool Consume(uint64_t n, F f);

  absl::Span<const absl::string_view> runs_;
  size_t run_ = 0;
  size_t at_ = 0;
  uint64_t left_ = 0;
};

// A writer of one message of the Step stream. Writes the message as protobuf would, field by field, but without a
// protobuf object and without copying tensors. Add the fields in the order of the message, then call Finish. For use by
// one thread.
class MessageWriter {
 public:
  // Adds a number, boolean or enum, or nothing if it is 0, as protobuf does.
  void AddNumber(int field, uint64_t value);
  void AddNumber(int field, int64_t value) { AddNumber(field, static_cast<uint64_t>(value)); }
  // Adds a number of type fixed64, or nothing if it is 0.
  void AddFixed64(int field, uint64_t value);
  void AddMessage(int field, const google::protobuf::MessageLite& message);
  void AddBytes(int field, absl::string_view bytes);
  // Adds a TensorPiece whose content must be one run of memory. Copies sparse and small pieces, and references the
  // memory of others, which `owner` keeps alive as long as gRPC needs it.
  void AddPiece(int field, const StepPiece& piece, const std::shared_ptr<const void>& owner);

  grpc::ByteBuffer Finish();

 private:
  // Returns room for `n` more bytes at the end of small_; EndAt sets where the bytes written there end.
  uint8_t* Room(size_t n);
  void EndAt(const uint8_t* end) { used_ = static_cast<size_t>(end - small_.data()); }
  void Append(const void* bytes, size_t n);
  void AddPieceHeader(int field, const StepPiece& piece);
  void AddSharedPiece(int field, const StepPiece& piece);
  // Copies the bytes collected in small_ to a slice.
  void Flush();

  static constexpr size_t kInlinedBytes = 256;
  absl::InlinedVector<uint8_t, kInlinedBytes> small_ = absl::InlinedVector<uint8_t, kInlinedBytes>(kInlinedBytes);
  size_t used_ = 0;  // bytes of small_
  absl::InlinedVector<grpc::Slice, 6> slices_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_FORMAT_H_
