#include "lockstep/train/events/summary_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/train/events/png.h"

namespace lockstep {

v1::Summary ScalarSummary(absl::string_view tag, double value) {
  v1::Summary summary;
  v1::Summary::Value* const scalar = summary.add_value();
  scalar->set_tag(std::string(tag));
  scalar->set_simple_value(static_cast<float>(value));
  return summary;
}

void SummaryBuilder::AddScalar(absl::string_view tag, float value) { summary_.MergeFrom(ScalarSummary(tag, value)); }

absl::Status SummaryBuilder::AddHistogram(absl::string_view tag, absl::Span<const float> values) {
  auto histogram = MakeHistogram(values);
  if (!histogram.ok()) {
    return absl::Status(histogram.status().code(), absl::StrCat("histogram ", tag, ": ", histogram.status().message()));
  }
  v1::Summary::Value* const value = summary_.add_value();
  value->set_tag(std::string(tag));
  *value->mutable_histo() = *std::move(histogram);
  return absl::OkStatus();
}

absl::Status SummaryBuilder::AddImage(absl::string_view tag, int64_t height, int64_t width, int64_t channels,
                                      absl::Span<const uint8_t> pixels) {
  absl::StatusOr<std::string> png = EncodePng(height, width, channels, pixels);
  if (!png.ok()) {
    return absl::Status(png.status().code(), absl::StrCat("image ", tag, ": ", png.status().message()));
  }
  v1::Summary::Value* const value = summary_.add_value();
  value->set_tag(std::string(tag));
  v1::Summary::Image* const image = value->mutable_image();
  image->set_height(static_cast<int32_t>(height));
  image->set_width(static_cast<int32_t>(width));
  image->set_colorspace(static_cast<int32_t>(channels));
  image->set_encoded_image_string(*std::move(png));
  return absl::OkStatus();
}

v1::Event SummaryBuilder::Build(int64_t step) {
  v1::Event event;
  event.set_step(step);
  *event.mutable_summary() = std::exchange(summary_, v1::Summary());
  return event;
}

}  // namespace lockstep
