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

// Sends the gradient estimates of top-k compression to one worker. Tracks which estimates the worker holds (see
// HeldEstimates, its mirror image) and which ones it needs before a token. Not thread-safe.
class EstimateSender {
 public:
  // `max_elements` is the capacity of one frame, which holds at least one piece.
  explicit EstimateSender(int64_t max_elements = int64_t{1} << 20) : max_elements_(max_elements) {}

  // Records that the worker has computed `block` of `step`, so that its copies of these slots' estimates are now those
  // of the next step.
  void Advance(int64_t step, const SlotBlock& block);

  // Adds the part of `estimates` that the worker lacks for a token of `step`, up to one frame. Returns true if the
  // worker then holds everything, so that the token may follow. In that case, forgets all other slots.
  bool Feed(const ParameterLayout& layout, int64_t step, const std::shared_ptr<const GradientEstimates>& estimates,
            const SlotBlock& block, StepReplyFrame* reply);

 private:
  struct Slot {
    int64_t step = -1;
    // Number of the model's segments passed so far; all of them if the worker holds the slot's estimate.
    size_t segments = 0;
  };
  const int64_t max_elements_;
  std::map<int64_t, Slot> slots_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_ESTIMATE_SENDER_H_
