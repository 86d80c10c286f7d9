#ifndef LOCKSTEP_COMMON_CLIENT_STEP_FRAME_H_
#define LOCKSTEP_COMMON_CLIENT_STEP_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/sync/slot_block.h"
#include "common/tensor/float_chunks.h"
#include "proto/chief.pb.h"

namespace lockstep {

// The messages of the Step stream (proto/chief.proto) as the two ends see them: decoded, with the
// tensors still in the memory where they lie. Value types.

// Bytes in memory that the two ends share.
struct PlaceInMemory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Part of one variable's gradient, or value; `content` does not own its memory.
struct StepPiece {
  int64_t variable = 0;
  int64_t offset = 0;  // elements
  FloatChunks content;
  // Of top-k compression: the slot, and whether `content` is differences (common/tensor/sparse_differences.h).
  int64_t slot = 0;
  bool sparse = false;
  // Travels in place of `content`.
  absl::optional<PlaceInMemory> shared;
};

// The differences of a segment, which starts at element `offset` of the variable, of a slot's gradient.
inline StepPiece SparsePiece(int64_t slot, int64_t variable, int64_t offset, absl::string_view differences) {
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  piece.slot = slot;
  piece.sparse = true;
  piece.content.Append(differences);
  return piece;
}

// A StepRequest.
struct StepFrame {
  uint64_t session_id = 0;
  int64_t epoch = 0;
  int64_t step = 0;
  SlotBlock block;  // count 0: no contribution
  std::vector<SlotReport> reports;
  std::vector<StepPiece> gradients;
  bool end = false;
  bool leave = false;
  int64_t startup_delay_steps = 0;
  absl::optional<SharedMemoryHandle> gradient_memory;
  // Of the message that it came in; 0 in process.
  int64_t encoded_bytes = 0;
};

// How much a StepRequest may hold to be decoded. As it is, what a stream's first frame may: no contribution.
struct StepFrameLimits {
  int64_t reports = 0;
  int64_t pieces = 0;
  // Of memory, for all but the pieces.
  int64_t bytes = 64 << 10;
};

// A StepReply.
struct StepReplyFrame {
  Fate fate = FATE_NONE;
  int64_t values_step = 0;
  std::vector<StepPiece> values;
  // Keeps the memory of `values` alive and unchanged.
  std::shared_ptr<const void> values_owner;
  int64_t estimates_step = 0;
  std::vector<StepPiece> estimates;
  std::shared_ptr<const void> estimates_owner;
  absl::optional<SharedMemoryHandle> values_memory;
  absl::optional<Token> token;
  bool finished = false;
  std::string finish_message;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STEP_FRAME_H_
