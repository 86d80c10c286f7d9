#ifndef LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_
#define LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_

#include <cstdint>

namespace lockstep {

// How many partial sums a chief holds while it sums a step's gradients along the tree over `slots` slots
// (docs/architecture.md, "Memory"). A partial sum is as large as the model's variables.

// The least bound with which every step can be summed: contributions that arrive in the order of their slots need no
// more.
int64_t LeastPartialSums(int64_t slots);
// What no order of arrival exceeds.
int64_t MostPartialSums(int64_t slots);
// The bound of a run that configures none, when a partial sum has `bytes`: one for each level of the tree, or as many
// as fit into 16 MiB in addition to the first, which needs no memory of its own.
int64_t DefaultPartialSums(int64_t slots, uint64_t bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_
