#include "lockstep/train/events/summary_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/train/events/png.h"

namespace lockstep {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// The buckets' limits, ascending.
std::vector<double> MakeLimits() {
  std::vector<double> limits = {0};
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) limits.push_back(limit);
  limits.push_back(kLargest);
  const size_t half = limits.size();
  for (size_t i = 1; i < half; ++i) limits.push_back(-limits[i]);
  std::sort(limits.begin(), limits.end());
  return limits;
}

const std::vector<double>& Limits() {
  static const auto* const limits = new std::vector<double>(MakeLimits());
  return *limits;
}

void AddBuckets(const std::vector<double>& counts, v1::HistogramProto* histogram) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) {
      while (i + 1 < counts.size() && counts[i + 1] == 0) ++i;
    }
    histogram->add_bucket_limit(Limits()[i]);
    histogram->add_bucket(counts[i]);
  }
}

}  // namespace

absl::StatusOr<v1::HistogramProto> MakeHistogram(absl::Span<const float> values) {
  v1::HistogramProto histogram;
  std::vector<double> counts(Limits().size(), 0);
  // As TensorFlow leaves them when there are no values.
  double min = kLargest, max = -kLargest, sum = 0, sum_squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) return absl::InvalidArgumentError(absl::StrCat("value ", i, " is ", value));
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    sum_squares += value * value;
    ++counts[std::upper_bound(Limits().begin(), Limits().end(), value) - Limits().begin()];
  }
  histogram.set_min(min);
  histogram.set_max(max);
  histogram.set_num(values.size());
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  AddBuckets(counts, &histogram);
  return histogram;
}

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
