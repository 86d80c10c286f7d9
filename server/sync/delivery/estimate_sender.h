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

// Which of the gradient estimates of top-k compression one worker holds (see HeldEstimates, its mirror image), and what
// it must be sent before a token. Not thread-safe.
class EstimateSender {
 public:
  // `max_elements`: what one frame takes, but at least one piece.
  explicit EstimateSender(int64_t max_elements = int64_t{1} << 20) : max_elements_(max_elements) {}

  // The worker has computed `block` of `step`: its copies of these slots' estimates are now those of the next step.
  void Advance(int64_t step, const SlotBlock& block);

  // Adds what the worker lacks for a token of `step`, whose estimates these are, as much as one frame takes. True when
  // it then holds everything, so that the token may follow; other slots are forgotten.
  bool Feed(const ParameterLayout& layout, int64_t step, const std::shared_ptr<const GradientEstimates>& estimates,
            const SlotBlock& block, StepReplyFrame* reply);

 private:
  struct Slot {
    int64_t step = -1;
    // Segments of the model that were passed; all when the worker holds the slot's estimate.
    size_t segments = 0;
  };
  const int64_t max_elements_;
  std::map<int64_t, Slot> slots_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_ESTIMATE_SENDER_H_
