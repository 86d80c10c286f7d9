#ifndef LOCKSTEP_COMMON_SUMMARY_SUMMARY_BUILDER_H_
#define LOCKSTEP_COMMON_SUMMARY_SUMMARY_BUILDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"

namespace lockstep {

// Counts `values` in TensorFlow's buckets: limits 1e-12 * 1.1^k below 1e20, the largest double, their
// negatives and 0. A bucket holds what is at least the limit before it and less than its own. Runs of
// empty buckets are one. InvalidArgument, with the index, for a value that is not finite.
absl::StatusOr<HistogramProto> MakeHistogram(absl::Span<const float> values);

// Collects the values of one step. Not thread-safe.
class SummaryBuilder {
 public:
  void AddScalar(absl::string_view tag, float value);
  // InvalidArgument names the tag when a value is not finite; nothing is added then.
  absl::Status AddHistogram(absl::string_view tag, absl::Span<const float> values);

  // Event with what was added, which starts anew. Its wall time is left to EventWriter.
  Event Build(int64_t step);

 private:
  Summary summary_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_SUMMARY_BUILDER_H_
