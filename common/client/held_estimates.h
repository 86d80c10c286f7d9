#ifndef LOCKSTEP_COMMON_CLIENT_HELD_ESTIMATES_H_
#define LOCKSTEP_COMMON_CLIENT_HELD_ESTIMATES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/client/step_frame.h"
#include "common/sync/slot_block.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/parameter_layout.h"

namespace lockstep {

// A worker's copies of the gradient estimates of top-k compression (docs/sync.md): those of the slots of the block that
// it computed last, brought to the next step, and those that the chief sent for the next token. For one thread.
class HeldEstimates {
 public:
  // `layout` must outlive this.
  explicit HeldEstimates(const ParameterLayout* layout);

  bool Holds(int64_t step, int64_t slot) const;
  // A part of the estimate of piece.slot at `step`, as received. InvalidArgument when it lies outside its variable.
  absl::Status Receive(int64_t step, const StepPiece& piece);
  // The whole of it.
  void Copy(int64_t step, int64_t slot, const AlignedBuffer& flat);

  // The estimates for a token, in the order of its slots, as flat arrays that the caller may change until the next
  // call; all others are dropped. At step 0 they are zeros. InvalidArgument names one that is not held.
  absl::StatusOr<std::vector<float*>> Take(int64_t step, const SlotBlock& block);
  // What Take has returned is now the estimates of the next step.
  void Advance();

 private:
  struct Estimate {
    int64_t step = -1;
    int64_t received_elements = 0;
    AlignedBuffer flat;
  };
  Estimate* Find(int64_t step, int64_t slot);

  const ParameterLayout& layout_;
  // Of the trainable variables.
  int64_t total_elements_ = 0;
  std::map<int64_t, Estimate> estimates_;  // by slot
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_HELD_ESTIMATES_H_
