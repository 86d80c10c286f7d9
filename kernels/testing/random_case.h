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

// Equal to the bit, or both NaN: processors differ in a NaN's sign and in the one of two that they hand on.
bool SameFloats(float a, float b);

// One case of a test: draws shapes and numbers, the same for a case's number on every machine and target, and places
// arrays so that who leaves them is found (guarded_memory.h). Keeps what is written, for comparison between targets.
// Not thread-safe; one at a time.
class RandomCase {
 public:
  explicit RandomCase(int number);

  // A whole number in [least, most].
  int64_t Between(int64_t least, int64_t most);
  // The same for a size: often a small one, or one beside a multiple of 8.
  int64_t Size(int64_t least, int64_t most);
  // True once in `n` times.
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  template <typename T, size_t kCount>
  const T& OneOf(const T (&choices)[kCount]) {
    return choices[Between(0, kCount - 1)];
  }
  // Above 0, of about that size.
  float Positive(float about);

  // Numbers that are near to 1, whole, or of every size; in some arrays zeros, infinities, NaN, subnormal and very
  // large ones among them.
  std::vector<float> Numbers(int64_t size);
  // The same without infinities, NaN and what becomes one of these in a few operations.
  std::vector<float> FiniteNumbers(int64_t size);
  template <typename T>
  std::vector<T> Integers(int64_t size) {
    std::vector<T> values(size);
    for (T& x : values) x = static_cast<T>(Next());
    return values;
  }

  // A copy, to be read.
  template <typename T>
  const T* Input(const std::vector<T>& values) {
    return static_cast<const T*>(Placed(values.data(), values.size() * sizeof(T)));
  }

  // An array all of which is to be written; with columns and a stride, but for the gaps between the rows.
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
  // A copy, to be read and written.
  template <typename T>
  T* InOut(const std::vector<T>& values) {
    T* const data = static_cast<T*>(Placed(values.data(), values.size() * sizeof(T)));
    outputs_.push_back({reinterpret_cast<char*>(data), values.size() * sizeof(T), sizeof(T), KindOf(data), {}, ""});
    return data;
  }
  // What is not in an array.
  template <typename T>
  void Result(T value) {
    InOut(std::vector<T>{value});
  }

  // Numbers drawn so far, for people.
  std::string Description() const;
  // What is wrong: a border or a gap that was written, or a float or double that was not. Empty when nothing is.
  std::string Violation() const;
  // The bytes of all outputs; every NaN counts as the same.
  std::vector<std::string> Results() const;
  // Where the results are not these, in words; empty when they are.
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
    // Of an array that is only written, with what its elements were.
    Rows rows;
    std::string unwritten;
  };

  static Kind KindOf(const float*) { return Kind::kFloat; }
  static Kind KindOf(const double*) { return Kind::kDouble; }
  static Kind KindOf(const void*) { return Kind::kOther; }

  // A NaN that nothing computes, and for other types a pattern.
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

// For ForEachRandomCase: a fault names the case; a case has failed by itself, or compares its results with `expected`,
// which it sets if it is empty.
void BeginCase(int number);
void EndCase(const RandomCase& random_case, std::vector<std::string>* expected);

// Calls body(random_case) for `count` cases, each on every target of this machine. Fails, and stops, at a case that
// fails by itself, leaves its arrays, or has other bits on one target than on another.
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
