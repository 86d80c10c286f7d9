#include "lockstep/common/summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

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
  // TensorFlow's initial values, which remain if there are no values.
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

}  // namespace lockstep
