#include "lockstep/server/rpc/step/worker_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

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

}  // namespace lockstep
