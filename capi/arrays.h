#ifndef LOCKSTEP_CAPI_ARRAYS_H_
#define LOCKSTEP_CAPI_ARRAYS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/worker/nn/compute/compute_context.h"

namespace lockstep {

// Maximum number of elements in a caller's array.
inline constexpr int64_t kMostElements = int64_t{1} << 40;

// Returns InvalidArgument unless an array of this shape can exist at `data`: the first dimension is at least 0, the
// others are at least 1, the product is at most kMostElements, and `data` is not null unless the array is empty.
absl::Status RequireArray(const void* data, const char* name, absl::Span<const int64_t> shape);

// Returns InvalidArgument unless each number is in [0, end) or equals `exception`.
absl::Status RequireInRange(absl::Span<const int64_t> numbers, const char* name, int64_t end, int64_t exception);
// Returns InvalidArgument unless `value` is in [0, 1].
absl::Status RequireShare(float value, const char* name);

// Runs `body`, the implementation of a function in kernels.h, on a context with one thread, and returns its result as
// Answer does. Fails with FailedPrecondition if LOCKSTEP_TARGET is wrong.
int Compute(absl::FunctionRef<absl::Status(ComputeContext* compute)> body);

// sums[c] = the sum of column c of x [rows, columns]. Sums within blocks of rows first, then over the blocks in order.
void SumAllRows(int64_t rows, int64_t columns, const float* x, float* sums);

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_ARRAYS_H_
