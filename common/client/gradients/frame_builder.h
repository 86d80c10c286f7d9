#ifndef LOCKSTEP_COMMON_CLIENT_GRADIENTS_FRAME_BUILDER_H_
#define LOCKSTEP_COMMON_CLIENT_GRADIENTS_FRAME_BUILDER_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// How a data path wants contributions cut. The defaults cut nothing: whatever is added leaves at once.
struct FrameSizes {
  // A frame leaves when its pieces hold this many bytes, so that sending starts while the rest is still being computed.
  int64_t frame_bytes = 0;
  // No piece of a gradient has more elements.
  int64_t piece_elements = std::numeric_limits<int64_t>::max();
  // Reports that take more are sent in several frames.
  int64_t report_bytes = std::numeric_limits<int64_t>::max();
};

// Packs what a worker says of its contributions into the frames of its Step stream, and fills in what each frame, or
// only the first one, must carry. Pure: every call returns the frames that are to be sent now, in order. Not
// thread-safe.
class FrameBuilder {
 public:
  struct Options {
    uint64_t session_id = 0;
    int64_t generation = 0;
    // These two travel with the first frame alone.
    int64_t startup_delay_steps = 0;
    absl::optional<v1::SharedMemoryHandle> gradient_memory;
    FrameSizes sizes;
  };

  explicit FrameBuilder(Options options);

  // What follows belongs to the contribution of this token; to none if its slot_count is 0.
  void Begin(const v1::Token& token) { token_ = token; }
  const v1::Token& token() const { return token_; }

  std::vector<StepFrame> AddReports(absl::Span<const v1::SlotReport> reports);
  absl::optional<StepFrame> AddPiece(StepPiece piece);
  // The next End carries them.
  void SetDigests(absl::Span<const uint64_t> digests) { digests_.assign(digests.begin(), digests.end()); }
  // The next End says that the input has ended, and drops what was added since the last frame.
  void SetEndOfInput() { end_of_input_ = true; }
  // Ends the contribution, if there is one, and asks for a token.
  StepFrame End();
  // Drops what was added since the last frame, and says that the worker leaves.
  StepFrame Leave();

 private:
  // The frame that was being filled; starts the next one.
  StepFrame Take();
  bool full() const { return frame_bytes_ >= options_.sizes.frame_bytes; }

  const Options options_;
  v1::Token token_;
  StepFrame frame_;  // being filled
  int64_t frame_bytes_ = 0;
  std::vector<uint64_t> digests_;
  bool end_of_input_ = false;
  bool first_ = true;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_GRADIENTS_FRAME_BUILDER_H_
