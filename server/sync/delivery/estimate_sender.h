#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_ESTIMATE_SENDER_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_ESTIMATE_SENDER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"

namespace lockstep {

// Sends the gradient estimates of top-k compression to one worker. Tracks which estimates the worker holds
// (HeldEstimates is the worker's counterpart) and which ones it still needs before its token. Not thread-safe.
class EstimateSender {
 public:
  // `max_elements` is the capacity of one frame, but a frame can always hold one piece, however large.
  explicit EstimateSender(int64_t max_elements = int64_t{1} << 20) : max_elements_(max_elements) {}

  // Records that the worker has computed `block` of `step`, so that its copies of these slots' estimates are now those
  // of the next step.
  void Advance(int64_t step, const SlotBlock& block);

  // Adds to `reply`, up to one frame, the estimates that the worker still lacks for a token for `block` of `step`.
  // Returns true if the worker then has all of them, so that the token may follow; in that case, forgets all other
  // slots.
  bool Feed(const ParameterLayout& layout, int64_t step, const std::shared_ptr<const GradientEstimates>& estimates,
            const SlotBlock& block, StepReplyFrame* reply);

 private:
  struct Slot {
    int64_t step = -1;
    // Number of the model's segments handled so far. If it is the number of all segments, the worker holds the slot's
    // whole estimate.
    size_t segments = 0;
  };
  const int64_t max_elements_;
  std::map<int64_t, Slot> slots_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_ESTIMATE_SENDER_H_
