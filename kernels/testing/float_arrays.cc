#include "lockstep/kernels/testing/float_arrays.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

constexpr int64_t kBorder = 32;
constexpr int64_t kAlignment = 16;
constexpr float kBorderValue = -77.25f;
// Small enough to neglect the curvature, and large enough to neglect the rounding errors of doubles.
constexpr double kStep = 1e-5;

}  // namespace

ResultArray::ResultArray(int64_t size) : size_(size), memory_(size + 2 * kBorder + kAlignment, kBorderValue) {
  const auto address = reinterpret_cast<uintptr_t>(memory_.data() + kBorder) / sizeof(float);
  begin_ = memory_.data() + kBorder + (kAlignment - address % kAlignment) % kAlignment;
  std::fill_n(begin_, size, std::nanf(""));
}

bool ResultArray::borders_intact() const {
  const auto untouched = [](float x) { return x == kBorderValue; };
  const std::ptrdiff_t begin = begin_ - memory_.data();
  return std::all_of(memory_.begin(), memory_.begin() + begin, untouched) &&
         std::all_of(memory_.begin() + begin + size_, memory_.end(), untouched);
}

std::vector<float> RandomFloats(int64_t size, uint64_t stream) {
  std::vector<float> values(size);
  Philox(1, stream).FillNormal(absl::MakeSpan(values));
  return values;
}

std::vector<float> RandomIntegers(int64_t size, uint64_t stream) {
  std::vector<float> values(size);
  Philox(2, stream).FillUniform(absl::MakeSpan(values));
  for (float& x : values) x = std::floor(x * 9) - 4;
  return values;
}

std::vector<double> ToDoubles(absl::Span<const float> values) { return {values.begin(), values.end()}; }

std::string FirstDifference(absl::Span<const float> actual, const std::vector<double>& expected, double tolerance) {
  if (actual.size() != expected.size()) {
    return absl::StrCat(actual.size(), " elements, expected ", expected.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double allowed = tolerance * std::max(1.0, std::abs(expected[i]));
    const bool same = actual[i] == expected[i] || std::abs(actual[i] - expected[i]) <= allowed ||
                      (std::isnan(expected[i]) && std::isnan(actual[i]));
    if (!same) return absl::StrCat("element ", i, " is ", actual[i], ", expected ", expected[i]);
  }
  return "";
}

std::vector<double> NumericGradient(std::vector<double> x, absl::Span<const float> weights,
                                    absl::FunctionRef<std::vector<double>(const std::vector<double>&)> f) {
  const auto sum = [&] {
    const std::vector<double> y = f(x);
    double total = 0;
    for (size_t j = 0; j < y.size(); ++j) total += y[j] * weights.at(j);
    return total;
  };
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double point = x[i];
    x[i] = point + kStep;
    const double above = sum();
    x[i] = point - kStep;
    gradient[i] = (above - sum()) / (2 * kStep);
    x[i] = point;
  }
  return gradient;
}

}  // namespace lockstep
