#ifndef LOCKSTEP_COMMON_SUMMARY_HISTOGRAM_H_
#define LOCKSTEP_COMMON_SUMMARY_HISTOGRAM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// Counts `values` in TensorFlow's buckets, whose limits are 0, 1e-12 * 1.1^k below 1e20, the largest double, and the
// negatives of these. A bucket holds the values from the previous limit up to, but not including, its own. Consecutive
// empty buckets become one. InvalidArgument, with the index, for a value that is not finite.
absl::StatusOr<v1::HistogramProto> MakeHistogram(absl::Span<const float> values);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_HISTOGRAM_H_
