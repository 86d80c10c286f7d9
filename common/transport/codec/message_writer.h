#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_MESSAGE_WRITER_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_MESSAGE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// Writes one message of the Step stream as protobuf would, field by field, without a protobuf object and without a copy
// of its tensors. Life: add the fields in the order of the message, then call Finish. For one thread.
class MessageWriter {
 public:
  // Adds a number, boolean or enum, which is absent if it is 0, as in protobuf.
  void AddNumber(int field, uint64_t value);
  void AddNumber(int field, int64_t value) { AddNumber(field, static_cast<uint64_t>(value)); }
  void AddMessage(int field, const google::protobuf::MessageLite& message);
  void AddBytes(int field, absl::string_view bytes);
  // Adds a TensorPiece, whose content must be one run of memory. The memory is referenced, and `owner` keeps it alive
  // as long as gRPC needs it; the memory of sparse and of small pieces is copied.
  void AddPiece(int field, const StepPiece& piece, const std::shared_ptr<const void>& owner);

  grpc::ByteBuffer Finish();

 private:
  // Returns room for `n` more small bytes; EndAt sets their end.
  uint8_t* Room(size_t n);
  void EndAt(const uint8_t* end) { used_ = static_cast<size_t>(end - small_.data()); }
  void Append(const void* bytes, size_t n);
  void AddPieceHeader(int field, const StepPiece& piece);
  void AddSharedPiece(int field, const StepPiece& piece);
  // Turns the small bytes into a slice.
  void Flush();

  static constexpr size_t kInlinedBytes = 256;
  absl::InlinedVector<uint8_t, kInlinedBytes> small_ = absl::InlinedVector<uint8_t, kInlinedBytes>(kInlinedBytes);
  size_t used_ = 0;  // of small_
  absl::InlinedVector<grpc::Slice, 6> slices_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_MESSAGE_WRITER_H_
