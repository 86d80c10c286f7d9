#ifndef LOCKSTEP_SERVER_CHIEF_ESTIMATE_FEED_H_
#define LOCKSTEP_SERVER_CHIEF_ESTIMATE_FEED_H_

#include <cstdint>
#include <map>

#include "common/client/step_frame.h"
#include "common/sync/slot_block.h"
#include "server/ps/variable_store.h"

namespace lockstep {

// Which of the gradient estimates of top-k compression one worker holds (see HeldEstimates, its mirror image), and what
// it must be sent before a token. Not thread-safe.
class EstimateFeed {
 public:
  // `max_elements`: what one frame takes, but at least one piece.
  explicit EstimateFeed(int64_t max_elements = int64_t{1} << 20) : max_elements_(max_elements) {}

  // The worker has computed `block` of `step`: its copies of these slots' estimates are now those of the next step.
  void Advance(int64_t step, const SlotBlock& block);

  // Adds what the worker lacks for a token of the store's present step, as much as one frame takes. True when it then
  // holds everything, so that the token may follow; other slots are forgotten.
  bool Feed(const VariableStore& store, const SlotBlock& block, StepReplyFrame* reply);

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

#endif  // LOCKSTEP_SERVER_CHIEF_ESTIMATE_FEED_H_
