#include "lockstep/server/ps/update_norms.h"

#include <cmath>

namespace lockstep {
namespace {

// Returns the sum of get(i) squared over i < n, accumulated in eight independent sums.
template <typename Get>
double SumOfSquares(int64_t n, Get get) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) {
      const double value = get(i + k);
      sums[k] += value * value;
    }
  }
  for (; i < n; ++i) {
    const double value = get(i);
    sums[0] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

void UpdateNormSums::Begin(bool gathers) {
  gathers_ = gathers;
  if (gathers) squares_.assign(static_cast<size_t>(segments_), Squares());
}

void UpdateNormSums::AddGradient(int segment, int64_t n, const float* sum, float divisor) {
  squares_[segment].gradient = SumOfSquares(n, [=](int64_t i) { return static_cast<double>(sum[i]) / divisor; });
}

void UpdateNormSums::AddChange(int segment, int64_t n, const float* before, const float* after) {
  squares_[segment].weights = SumOfSquares(n, [=](int64_t i) { return static_cast<double>(before[i]); });
  squares_[segment].change =
      SumOfSquares(n, [=](int64_t i) { return static_cast<double>(after[i]) - static_cast<double>(before[i]); });
}

UpdateNorms UpdateNormSums::Total() const {
  Squares total;
  for (const Squares& squares : squares_) {
    total.gradient += squares.gradient;
    total.weights += squares.weights;
    total.change += squares.change;
  }
  return {std::sqrt(total.gradient), std::sqrt(total.weights), std::sqrt(total.change)};
}

}  // namespace lockstep
