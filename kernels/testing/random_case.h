#ifndef LOCKSTEP_KERNELS_TESTING_RANDOM_CASE_H_
#define LOCKSTEP_KERNELS_TESTING_RANDOM_CASE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"

namespace lockstep {

// Returns true if a and b have the same bits or are both NaN. Processors differ in a NaN's sign and in which of two
// NaNs they propagate.
bool SameFloats(float a, float b);

// A test case. Draws shapes and numbers that depend only on the case's number, and are the same on every machine and
// target. Places arrays so that accesses outside them are detected (guarded_memory.h). Keeps the outputs for comparison
// between targets. Not thread-safe. Only one may exist at a time.
class RandomCase {
 public:
  explicit RandomCase(int number);

  // Returns a whole number in [least, most].
  int64_t Between(int64_t least, int64_t most);
  // Like Between, but for sizes: often returns a small size, or one next to a multiple of 8.
  int64_t Size(int64_t least, int64_t most);
  // Returns true with probability 1 / n.
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  template <typename T, size_t kCount>
  const T& OneOf(const T (&choices)[kCount]) {
    return choices[Between(0, kCount - 1)];
  }
  // Returns a positive number of about the magnitude of `about`.
  float Positive(float about);

  // Returns numbers that are near 1, whole, or of any magnitude. Some arrays include zeros, infinities, NaN, subnormal
  // and very large numbers.
  std::vector<float> Numbers(int64_t size);
  // Like Numbers, but without infinities, NaN and numbers that become one of these in a few operations.
  std::vector<float> FiniteNumbers(int64_t size);
  template <typename T>
  std::vector<T> Integers(int64_t size) {
    std::vector<T> values(size);
    for (T& x : values) x = static_cast<T>(Next());
    return values;
  }

  // Returns a read-only copy.
  template <typename T>
  const T* Input(const std::vector<T>& values) {
    return static_cast<const T*>(Placed(values.data(), values.size() * sizeof(T)));
  }

  // Returns an array that must be written completely, except for the gaps between rows if columns and a stride are
  // given.
  template <typename T = float>
  T* Output(int64_t size) {
    return Output<T>(1, size, size);
  }
  template <typename T = float>
  T* Output(int64_t rows, int64_t columns, int64_t stride) {
    const int64_t size = (rows - 1) * stride + columns;
    T* const data = InOut(std::vector<T>(size, Unwritten<T>()));
    const T unwritten = Unwritten<T>();
    outputs_.back().rows = {rows, columns, stride};
    outputs_.back().unwritten = std::string(reinterpret_cast<const char*>(&unwritten), sizeof(unwritten));
    return data;
  }
  // Returns a copy that may be read and written.
  template <typename T>
  T* InOut(const std::vector<T>& values) {
    T* const data = static_cast<T*>(Placed(values.data(), values.size() * sizeof(T)));
    outputs_.push_back({reinterpret_cast<char*>(data), values.size() * sizeof(T), sizeof(T), KindOf(data), {}, ""});
    return data;
  }
  // Adds a result that is not in an array.
  template <typename T>
  void Result(T value) {
    InOut(std::vector<T>{value});
  }

  // Describes the numbers drawn so far.
  std::string Description() const;
  // Describes a border or gap that was written, or a float or double that was not. Returns an empty string if there is
  // none.
  std::string Violation() const;
  // Returns the bytes of all outputs, with all NaNs made alike.
  std::vector<std::string> Results() const;
  // Describes the first difference between the results and `expected`, or returns an empty string if they are equal.
  std::string DifferenceFrom(const std::vector<std::string>& expected) const;

 private:
  enum class Kind { kOther, kFloat, kDouble };
  struct Rows {
    int64_t count = 0;
    int64_t columns = 0;
    int64_t stride = 0;
  };
  struct OutputArray {
    const char* data;
    size_t size;
    size_t element_size;
    Kind kind;
    // The rows of a write-only array, and its elements' initial bytes.
    Rows rows;
    std::string unwritten;
  };

  static Kind KindOf(const float*) { return Kind::kFloat; }
  static Kind KindOf(const double*) { return Kind::kDouble; }
  static Kind KindOf(const void*) { return Kind::kOther; }

  // Returns a NaN that no computation produces, or a pattern for other types.
  template <typename T>
  static T Unwritten() {
    T value;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr uint64_t kBits = sizeof(T) == sizeof(float) ? 0x7FDEC0DE : 0x7FFDEC0DEC0DEC0D;
      std::memcpy(&value, &kBits, sizeof(value));  // Little-endian.
    } else {
      std::memset(&value, 0xFD, sizeof(value));
    }
    return value;
  }

  uint64_t Next();
  float Number(int kind);
  void* Placed(const void* from, size_t size);

  const int number_;
  uint64_t state_;
  int slots_ = 0;
  std::vector<int64_t> drawn_;
  std::vector<OutputArray> outputs_;
};

// Used by ForEachRandomCase. After BeginCase, the report of a fault names the case. EndCase fails if the case has a
// violation, and compares its results with `expected`, or sets `expected` if it is empty.
void BeginCase(int number);
void EndCase(const RandomCase& random_case, std::vector<std::string>* expected);

// Calls body(random_case) for `count` cases, each on every target of this machine. Stops at the first case that fails,
// accesses memory outside its arrays, or produces different bits on two targets.
template <typename Body>
void ForEachRandomCase(int count, Body body) {
  for (int number = 0; number < count && !testing::Test::HasFailure(); ++number) {
    std::vector<std::string> expected;
    ForEachTarget([&] {
      BeginCase(number);
      RandomCase random_case(number);
      body(random_case);
      EndCase(random_case, &expected);
    });
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TESTING_RANDOM_CASE_H_
