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

// Limits that determine how a data path splits contributions. By default nothing is split, and each addition is sent
// immediately.
struct FrameSizes {
  // A frame is sent when its pieces hold this many bytes, so that sending starts while the rest is still being
  // computed.
  int64_t frame_bytes = 0;
  // Maximum number of elements in one gradient piece.
  int64_t piece_elements = std::numeric_limits<int64_t>::max();
  // Reports that exceed this are split over several frames.
  int64_t report_bytes = std::numeric_limits<int64_t>::max();
};

// Builder of the frames in which a worker's contributions travel over its Step stream. Fills in the fields that each
// frame carries and those that only the first one carries. Performs no I/O: every call returns the frames to send now,
// in order. Not thread-safe.
class FrameBuilder {
 public:
  // `first` has the session_id and generation of every frame, and the startup_delay_steps and gradient_memory of the
  // first one.
  FrameBuilder(StepFrame first, const FrameSizes& sizes);

  // Starts the contribution for this token, or none if the token's slot_count is 0.
  void Begin(const v1::Token& token) { token_ = token; }
  const v1::Token& token() const { return token_; }

  std::vector<StepFrame> AddReports(absl::Span<const v1::SlotReport> reports);
  absl::optional<StepFrame> AddPiece(StepPiece piece);
  // Attaches the digests to the frame that the next End returns.
  void SetDigests(absl::Span<const uint64_t> digests) { digests_.assign(digests.begin(), digests.end()); }
  // Attaches the times (EncodeStepTimes) to the frame that the next End returns, if that frame completes a
  // contribution.
  void SetTimes(uint64_t times) { times_ = times; }
  // Makes the next End report the end of the input and drop everything added since the last frame.
  void SetEndOfInput() { end_of_input_ = true; }
  // Ends the contribution, if any, and requests a token.
  StepFrame End();
  // Drops everything added since the last frame, and returns the frame that announces that the worker is leaving.
  StepFrame Leave();

 private:
  // Returns the current frame and starts the next one.
  StepFrame Take();
  bool full() const { return frame_bytes_ >= sizes_.frame_bytes; }

  const StepFrame first_;
  const FrameSizes sizes_;
  v1::Token token_;
  StepFrame frame_;  // being filled
  int64_t frame_bytes_ = 0;
  std::vector<uint64_t> digests_;
  uint64_t times_ = 0;
  bool end_of_input_ = false;
  bool introduced_ = false;  // the first frame has been returned
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_GRADIENTS_FRAME_BUILDER_H_
