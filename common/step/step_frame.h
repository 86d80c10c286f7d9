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

// The messages of the Step stream (proto/lockstep/v1/chief.proto) as both ends use them: decoded, with the tensors left
// in place. docs/glossary.md defines frame, report, piece and segment. Value types.

// A range of bytes in memory that both ends share.
struct SharedSpan {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A part of one variable's gradient or value.
struct StepPiece {
  int64_t variable = 0;
  int64_t offset = 0;  // elements
  FloatChunks content;
  // Keeps the memory of `content` alive and unchanged as long as a sender needs it. Null if the content is copied
  // immediately (sparse pieces), if it is not sent (`shared`), or if the frame or its source owns it.
  std::shared_ptr<const void> owner;
  // With top-k compression, the slot, and whether `content` holds differences (common/step/sparse_differences.h).
  int64_t slot = 0;
  bool sparse = false;
  // Sent instead of `content`.
  absl::optional<SharedSpan> shared;
};

// Returns a piece with the differences of one segment of a slot's gradient. The segment starts at element `offset` of
// the variable.
inline StepPiece SparsePiece(int64_t slot, int64_t variable, int64_t offset, absl::string_view differences) {
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  piece.slot = slot;
  piece.sparse = true;
  piece.content.Append(differences);
  return piece;
}

// The way that a message of a Step stream takes.
enum class WirePath { kTcp, kUnixSocket, kRing };

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
  // The worker's endpoint of a ring.
  absl::optional<v1::SharedMemoryHandle> ring;
  // Digests of the trainable variables' gradients, sent with `end`. Empty if the token requests none.
  std::vector<uint64_t> digests;
  // The result of EncodeStepTimes, sent with `end`. 0 if the worker reports no times.
  uint64_t times = 0;
  // Size of the received message in bytes; 0 in process.
  int64_t encoded_bytes = 0;
  WirePath path = WirePath::kTcp;
};

// Limits for decoding a StepRequest. The defaults are for a stream's first frame, which has no contribution.
struct StepFrameLimits {
  int64_t reports = 0;
  int64_t pieces = 0;
  // Maximum bytes of memory for everything except the pieces. Digests are included.
  int64_t bytes = 64 << 10;
};

// The values that a chief in the same process hands over with a token instead of sending them.
struct HandedOverValues {
  // All values at the token's step except the constant variables, flat (ParameterLayout). The pointer also identifies
  // the version of these values, and keeps `encoded` alive.
  std::shared_ptr<const AlignedBuffer> flat;
  // The values of the constant variables, from ParameterLayout::constants_offset() on; null if there are none.
  std::shared_ptr<const AlignedBuffer> constants;
  // The trainable values rounded to `type`, a 16-bit type, at the same element offsets; null if workers get float32.
  const uint16_t* encoded = nullptr;
  v1::DataType type = v1::DT_FLOAT;
  // With top-k compression, the estimates of the token's slots, in memory owned by the reply's estimates_owner.
  std::vector<const AlignedBuffer*> estimates;
};

// Clears the frame but keeps the memory of its lists for the next one.
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
  absl::optional<v1::SharedMemoryHandle> constants_memory;
  // The reply to StepFrame::ring; a size of 0 bytes means no ring.
  absl::optional<v1::SharedMemoryHandle> ring;
  // Set only in process.
  absl::optional<HandedOverValues> handed_over;
  absl::optional<v1::Token> token;
  // Set with a token if they differ from the previous token's settings.
  absl::optional<v1::GradientSettings> settings;
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
