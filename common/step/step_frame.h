#ifndef LOCKSTEP_COMMON_STEP_STEP_FRAME_H_
#define LOCKSTEP_COMMON_STEP_STEP_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/tensor/float_chunks.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The messages of the Step stream (proto/lockstep/v1/chief.proto) as the two ends see them: decoded, with the
// tensors still in the memory where they lie. Frame, report, piece, segment: docs/glossary.md. Value types.

// Bytes in memory that the two ends share.
struct SharedSpan {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Part of one variable's gradient, or value.
struct StepPiece {
  int64_t variable = 0;
  int64_t offset = 0;  // elements
  FloatChunks content;
  // Keeps the memory of `content` alive and unchanged, for as long as a sender needs it. Null where that is copied at
  // once (sparse pieces), where nothing of it travels (`shared`), and where the frame or what it was decoded from owns
  // it.
  std::shared_ptr<const void> owner;
  // With top-k compression: the slot, and whether `content` is differences (common/step/sparse_differences.h).
  int64_t slot = 0;
  bool sparse = false;
  // Travels in place of `content`.
  absl::optional<SharedSpan> shared;
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
  int64_t generation = 0;
  int64_t step = 0;
  SlotBlock block;  // count 0: no contribution
  std::vector<v1::SlotReport> reports;
  std::vector<StepPiece> gradients;
  bool end = false;
  bool leave = false;
  bool end_of_input = false;
  int64_t startup_delay_steps = 0;
  absl::optional<v1::SharedMemoryHandle> gradient_memory;
  // The worker's end of a ring.
  absl::optional<v1::SharedMemoryHandle> ring;
  // Of the trainable variables' gradients, with `end`; empty when the token asks for none.
  std::vector<uint64_t> digests;
  // Bytes of the message that it came in; 0 in process.
  int64_t encoded_bytes = 0;
};

// How much a StepRequest may hold to be decoded. As it is, what a stream's first frame may: no contribution.
struct StepFrameLimits {
  int64_t reports = 0;
  int64_t pieces = 0;
  // Bytes of memory, for everything except the pieces, digests included.
  int64_t bytes = 64 << 10;
};

// What a chief in the same process hands over with a token instead of sending it.
struct HandedOverValues {
  // All values at the token's step, flat (ParameterLayout). Tells versions apart, and keeps `encoded` alive, too.
  std::shared_ptr<const AlignedBuffer> flat;
  // The trainable ones rounded to `type`, a 16-bit type, at the same element offsets; null when workers get float32.
  const uint16_t* encoded = nullptr;
  v1::DataType type = v1::DT_FLOAT;
  // With top-k compression: those of the token's slots, in the memory of the reply's estimates_owner.
  std::vector<const AlignedBuffer*> estimates;
};

// Forgets what the frame holds, but keeps the memory of its lists for the next.
inline void Clear(StepFrame* frame) {
  StepFrame empty;
  empty.reports.swap(frame->reports);
  empty.gradients.swap(frame->gradients);
  empty.digests.swap(frame->digests);
  empty.reports.clear();
  empty.gradients.clear();
  empty.digests.clear();
  *frame = std::move(empty);
}

// A StepReply.
struct StepReplyFrame {
  v1::ContributionResult result = v1::CONTRIBUTION_NONE;
  int64_t values_step = 0;
  std::vector<StepPiece> values;
  // Keeps the memory of `values` alive and unchanged.
  std::shared_ptr<const void> values_owner;
  int64_t estimates_step = 0;
  std::vector<StepPiece> estimates;
  std::shared_ptr<const void> estimates_owner;
  absl::optional<v1::SharedMemoryHandle> values_memory;
  // The answer to StepFrame::ring; no bytes: there is no ring.
  absl::optional<v1::SharedMemoryHandle> ring;
  // In process alone.
  absl::optional<HandedOverValues> handed_over;
  absl::optional<v1::Token> token;
  bool finished = false;
  std::string finish_message;
};

inline void Clear(StepReplyFrame* frame) {
  StepReplyFrame empty;
  empty.values.swap(frame->values);
  empty.estimates.swap(frame->estimates);
  empty.values.clear();
  empty.estimates.clear();
  *frame = std::move(empty);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_STEP_FRAME_H_
