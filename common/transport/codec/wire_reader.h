#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_READER_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_READER_H_

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/float_chunks.h"

namespace lockstep {

// Reads the protobuf wire format from bytes that lie in several runs, without joining them.
// Every call returns false at the end of the bytes or when they are malformed. Not thread-safe.
class WireReader {
 public:
  // `runs` must outlive the reader.
  explicit WireReader(absl::Span<const absl::string_view> runs);

  // Bytes not read yet.
  uint64_t left() const { return left_; }

  bool ReadVarint(uint64_t* value) {
    // Most varints are one byte, and not the first of a run.
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
  // Reads `n` bytes, copied.
  bool ReadString(uint64_t n, std::string* out);
  // Reads `n` bytes, by reference.
  bool ReadChunks(uint64_t n, FloatChunks* out);
  // Adds the location of the next `n` bytes.
  using Runs = absl::InlinedVector<absl::string_view, 4>;
  bool ReadRuns(uint64_t n, Runs* out);
  // Skips the value of a field of that type.
  bool SkipField(uint32_t wire_type);
  bool Skip(uint64_t n);

 private:
  bool ReadByte(uint8_t* byte);
  bool ReadLongVarint(uint64_t* value);
  template <typename NextByte>
  static bool AssembleVarint(uint64_t* value, NextByte next_byte);
  // Calls f(run) for the parts of the next n bytes and moves past them.
  template <typename F>
  bool Consume(uint64_t n, F f);

  absl::Span<const absl::string_view> runs_;
  size_t run_ = 0;
  size_t at_ = 0;
  uint64_t left_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_WIRE_READER_H_
