#ifndef LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_
#define LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_

#include <cstdint>

namespace lockstep {

// Bounds on the number of partial sums that a chief holds while it sums a step's gradients along the tree over `slots`
// slots (docs/architecture.md, "Memory"). A partial sum is as large as the model's variables.

// Returns the smallest bound that suffices to sum every step: contributions that arrive in slot order need no more.
int64_t LeastPartialSums(int64_t slots);
// Returns the largest number of partial sums that any order of arrival can need.
int64_t MostPartialSums(int64_t slots);
// Returns the default bound for partial sums of `bytes` bytes each: one per level of the tree or, if that is more, as
// many as fit into 16 MiB in addition to the first, which needs no memory of its own; but at most
// MostPartialSums(slots).
int64_t DefaultPartialSums(int64_t slots, uint64_t bytes);

// Returns the default number of contributions of `bytes` that a chief stages at the same time: 3, or, if that is more,
// as many as fit into 16 MiB.
int64_t DefaultStagedContributions(uint64_t bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_PARTIAL_SUMS_H_
