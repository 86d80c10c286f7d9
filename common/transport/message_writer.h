#ifndef LOCKSTEP_COMMON_TRANSPORT_MESSAGE_WRITER_H_
#define LOCKSTEP_COMMON_TRANSPORT_MESSAGE_WRITER_H_

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
// of its tensors. Life: fields in the order in which they are to lie, then Finish. For one thread.
class MessageWriter {
 public:
  // Numbers, booleans and enums. Absent when it is 0, as protobuf has it.
  void AddNumber(int field, uint64_t value);
  void AddNumber(int field, int64_t value) { AddNumber(field, static_cast<uint64_t>(value)); }
  void AddMessage(int field, const google::protobuf::MessageLite& message);
  void AddBytes(int field, absl::string_view bytes);
  // A TensorPiece, whose content must be one run of memory. The memory is referenced, and `owner` keeps it alive as
  // long as gRPC needs it; that of sparse and of small pieces is copied.
  void AddPiece(int field, const StepPiece& piece, const std::shared_ptr<const void>& owner);

  grpc::ByteBuffer Finish();

 private:
  // Room for `n` more small bytes; EndAt says where they end.
  uint8_t* Room(size_t n);
  void EndAt(const uint8_t* end) { used_ = static_cast<size_t>(end - small_.data()); }
  void Append(const void* bytes, size_t n);
  void AddPieceHeader(int field, const StepPiece& piece);
  void AddSharedPiece(int field, const StepPiece& piece);
  // The small bytes become a slice.
  void Flush();

  static constexpr size_t kInlinedBytes = 256;
  absl::InlinedVector<uint8_t, kInlinedBytes> small_ = absl::InlinedVector<uint8_t, kInlinedBytes>(kInlinedBytes);
  size_t used_ = 0;  // of small_
  absl::InlinedVector<grpc::Slice, 6> slices_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_MESSAGE_WRITER_H_
