#ifndef LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_
#define LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// Counts `values` in TensorFlow's buckets: limits 1e-12 * 1.1^k below 1e20, the largest double, their
// negatives and 0. A bucket holds what is at least the previous limit and less than its own. Consecutive
// empty buckets become one. InvalidArgument, with the index, for a value that is not finite.
absl::StatusOr<v1::HistogramProto> MakeHistogram(absl::Span<const float> values);

// Returns a summary of one number.
v1::Summary ScalarSummary(absl::string_view tag, double value);

// Collects the values of one step. Not thread-safe.
class SummaryBuilder {
 public:
  void AddScalar(absl::string_view tag, float value);
  // InvalidArgument names the tag when a value is not finite; nothing is added then.
  absl::Status AddHistogram(absl::string_view tag, absl::Span<const float> values);

  // An image of 8 bits a channel, as EncodePng takes it. Its errors name the tag; nothing is added then.
  absl::Status AddImage(absl::string_view tag, int64_t height, int64_t width, int64_t channels,
                        absl::Span<const uint8_t> pixels);

  // Returns an event with everything that was added, and starts over. EventWriter sets its wall time.
  v1::Event Build(int64_t step);

 private:
  v1::Summary summary_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_
