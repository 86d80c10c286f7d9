#ifndef LOCKSTEP_KERNELS_TESTING_FLOAT_ARRAYS_H_
#define LOCKSTEP_KERNELS_TESTING_FLOAT_ARRAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace lockstep {

// Memory for a result. Elements are NaN until they are written, so that tests detect omitted ones. The borders around
// them must not change. The first element is aligned to 64 bytes.
class ResultArray {
 public:
  explicit ResultArray(int64_t size);
  ResultArray(ResultArray&&) = default;
  ResultArray& operator=(ResultArray&&) = default;

  float* data() { return begin_; }
  absl::Span<float> values() { return {begin_, static_cast<size_t>(size_)}; }
  absl::Span<const float> values() const { return {begin_, static_cast<size_t>(size_)}; }
  // Returns true if nothing outside the array has been written.
  bool borders_intact() const;

 private:
  int64_t size_;
  std::vector<float> memory_;
  float* begin_;
};

// Returns normally distributed random numbers from stream `stream`.
std::vector<float> RandomFloats(int64_t size, uint64_t stream);

// Returns random whole numbers in [-4, 4]. Sums of their products are exact in any order, up to 2^24.
std::vector<float> RandomIntegers(int64_t size, uint64_t stream);

std::vector<double> ToDoubles(absl::Span<const float> values);

// Describes the first element of `actual` that differs from `expected` by more than tolerance * max(1, |expected|), or
// returns an empty string if there is none. NaN matches only NaN.
std::string FirstDifference(absl::Span<const float> actual, const std::vector<double>& expected, double tolerance);

// Returns the derivatives of sum_j weights[j] f(x)[j] with respect to x, by central differences.
std::vector<double> NumericGradient(std::vector<double> x, absl::Span<const float> weights,
                                    absl::FunctionRef<std::vector<double>(const std::vector<double>&)> f);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TESTING_FLOAT_ARRAYS_H_
