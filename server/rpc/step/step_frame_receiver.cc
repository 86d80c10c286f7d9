#include "lockstep/server/rpc/step/step_frame_receiver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Enough for a few numbers and the name of shared memory.
constexpr size_t kMaxFirstFrameBytes = 4096;

}  // namespace

absl::Status WorkerMemory::Map(const v1::SharedMemoryHandle& handle) {
  ASSIGN_OR_RETURN(memory_, SharedMemory::Map(handle));
  return absl::OkStatus();
}

absl::Status WorkerMemory::FindGradients(StepFrame* frame) const {
  for (StepPiece& piece : frame->gradients) {
    if (!piece.shared) continue;
    if (!exists()) return absl::InvalidArgumentError("a gradient lies in shared memory; the stream has none");
    const SharedSpan& place = *piece.shared;
    if (place.offset % sizeof(float) != 0 || place.offset > size() || place.bytes > size() - place.offset) {
      return absl::InvalidArgumentError(absl::StrCat("a gradient lies at byte ", place.offset, " with ", place.bytes,
                                                     " bytes in shared memory of ", size()));
    }
    const v1::DataType type = piece.content.type();
    piece.content = FloatChunks();
    piece.content.Append({memory_->data() + place.offset, place.bytes});
    piece.content.set_type(type);
  }
  return absl::OkStatus();
}

absl::Status StepFrameReceiver::Decode(const grpc::ByteBuffer& message, Decoded<StepFrame>* decoded) const {
  if (!connected() && message.Length() > kMaxFirstFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a first frame of ", message.Length(), " bytes; it takes ", kMaxFirstFrameBytes));
  }
  return DecodeStepRequest(message, limits_, decoded);
}

absl::StatusOr<std::shared_ptr<StepConnection>> StepFrameReceiver::Connect(const StepFrame& first,
                                                                           std::shared_ptr<StepListener> listener) {
  // Check the session before doing anything that the frame requests.
  RETURN_IF_ERROR(chief_->sessions()->CheckSession(first.session_id, first.generation, peer_));
  if (first.gradient_memory && chief_->sessions()->shares_memory()) {
    const absl::Status mapped = memory_.Map(*first.gradient_memory);
    if (!mapped.ok()) LOG(INFO) << "a worker's memory is not shared: " << mapped.message();
  }
  const ValuePath path = memory_.exists() ? ValuePath::kShared : ValuePath::kStreamed;
  ASSIGN_OR_RETURN(connection_, chief_->sessions()->OpenStep(first.session_id, first.generation, path,
                                                             std::move(listener), peer_, address_));
  limits_ = connection_->frame_limits();
  return connection_;
}

absl::Status StepFrameReceiver::Deliver(StepFrame* frame, bool* waits) {
  RETURN_IF_ERROR(memory_.FindGradients(frame));
  return connection_->OnFrame(*frame, waits);
}

size_t StepFrameReceiver::WorkBytes(const grpc::ByteBuffer& message) const { return message.Length() + memory_.size(); }

}  // namespace lockstep
