#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_HELD_ESTIMATES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_HELD_ESTIMATES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// A worker's copies of the gradient estimates of top-k compression (docs/sync.md). The worker computed some of them for
// its last block and updated them for the next step. The chief sent the others for the next token. Not thread-safe.
class HeldEstimates {
 public:
  // `layout` must outlive this. `slots` is R, the number of slots in a step.
  HeldEstimates(const ParameterLayout* layout, int64_t slots);

  bool Holds(int64_t step, int64_t slot) const;
  // Stores a received part of the estimate of piece.slot at `step`. Returns InvalidArgument if the part lies outside
  // its variable, if the variable is not trained, or if the slot does not exist.
  absl::Status Receive(int64_t step, const StepPiece& piece);
  // Copies the whole estimate.
  void Copy(int64_t step, int64_t slot, const AlignedBuffer& flat);

  // Returns the estimates for a token in slot order, as flat arrays that the caller may modify until the next call, and
  // drops all others. At step 0, the estimates are zeros. Returns InvalidArgument naming a missing estimate.
  absl::StatusOr<std::vector<float*>> Take(int64_t step, const SlotBlock& block);
  // Marks the estimates that Take returned, which the caller has updated, as the estimates for the next step.
  void Advance();

 private:
  struct Estimate {
    int64_t step = -1;
    int64_t received_elements = 0;
    AlignedBuffer flat;
  };
  Estimate* Find(int64_t step, int64_t slot);

  const ParameterLayout& layout_;
  const int64_t slots_;
  // Number of elements in the trainable variables.
  int64_t total_elements_ = 0;
  std::map<int64_t, Estimate> estimates_;  // by slot
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_HELD_ESTIMATES_H_
