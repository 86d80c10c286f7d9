#ifndef LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_
#define LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/summary/histogram.h"  // IWYU pragma: export
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// Returns a summary that holds one number.
v1::Summary ScalarSummary(absl::string_view tag, double value);

// A builder for the summary of one step's values. Not thread-safe.
class SummaryBuilder {
 public:
  void AddScalar(absl::string_view tag, float value);
  // Returns InvalidArgument naming the tag, and adds nothing, if a value is not finite.
  absl::Status AddHistogram(absl::string_view tag, absl::Span<const float> values);

  // Adds an image with 8 bits per channel. If EncodePng fails, adds nothing and returns its error, prefixed with the
  // tag.
  absl::Status AddImage(absl::string_view tag, int64_t height, int64_t width, int64_t channels,
                        absl::Span<const uint8_t> pixels);

  // Returns an event with everything added so far, and starts over. EventWriter sets the wall time.
  v1::Event Build(int64_t step);

 private:
  v1::Summary summary_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVENTS_SUMMARY_BUILDER_H_
