#include "lockstep/server/ps/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/normal_numbers.h"
#include "lockstep/kernels/portable_math.h"

namespace lockstep {
namespace {

struct Fans {
  double in;
  double out;
};

// Computes the fans like TensorFlow's _compute_fans (init_ops.py): both fans of a vector are its length, and all
// dimensions before the last two form the receptive field.
Fans FansOf(const v1::VariableSpec& variable) {
  const auto& shape = variable.shape();
  const int rank = shape.size();
  if (rank == 0) return {1, 1};
  if (rank == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (int i = 0; i < rank - 2; ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[rank - 2]), field * static_cast<double>(shape[rank - 1])};
}

void FillUniformBetween(const Philox& philox, double min, double max, absl::Span<float> out) {
  philox.FillUniform(out);
  for (float& x : out) x = static_cast<float>(min + (max - min) * x);
}

void FillNormalAround(const Philox& philox, double mean, double stddev, absl::Span<float> out) {
  philox.FillNormal(out);
  for (float& x : out) x = static_cast<float>(mean + stddev * x);
}

constexpr double kTruncation = 2;

// Returns the value of element i of n: the first normally distributed number of blocks i, i + n, i + 2n, ... that is
// within [-2, 2].
double TruncatedAt(const Philox& philox, uint64_t i, uint64_t n) {
  for (;; i += n) {
    const Philox::Block block = philox.At(i);
    for (int pair = 0; pair < 4; pair += 2) {
      // Uses the formula of NormalPairs.
      const double u = (static_cast<double>(block[pair]) + 1.0) * 0x1p-32;
      const double angle = 2.0 * M_PI * static_cast<double>(block[pair + 1]) * 0x1p-32;
      const double radius = std::sqrt(-2.0 * portable::Log(u));
      const double first = radius * portable::Cos(angle);
      if (std::abs(first) <= kTruncation) return first;
      const double second = radius * portable::Sin(angle);
      if (std::abs(second) <= kTruncation) return second;
    }
  }
}

void FillTruncatedNormal(const Philox& philox, double mean, double stddev, absl::Span<float> out) {
  // Draws the first pairs of many blocks together, because nearly every pair has a number in range.
  uint32_t blocks[4 * kNormalPairs], words[2 * kNormalPairs];
  double first[kNormalPairs], second[kNormalPairs];
  for (size_t begin = 0; begin < out.size(); begin += kNormalPairs) {
    philox.FillBits(begin, blocks);
    for (int i = 0; i < kNormalPairs; ++i) std::copy_n(&blocks[4 * i], 2, &words[2 * i]);
    NormalPairs(words, first, second);
    for (size_t i = begin; i < std::min(out.size(), begin + kNormalPairs); ++i) {
      double x = first[i - begin];
      if (std::abs(x) > kTruncation) x = second[i - begin];
      if (std::abs(x) > kTruncation) x = TruncatedAt(philox, i, out.size());
      out[i] = static_cast<float>(mean + stddev * x);
    }
  }
}

// Fills `out` with Glorot's scaling if `fan` is fan_in + fan_out, and with He's if `fan` is fan_in.
void FillScaled(const Philox& philox, bool normal, double fan, absl::Span<float> out) {
  if (normal) {
    FillTruncatedNormal(philox, 0, std::sqrt(2 / fan), out);
  } else {
    const double limit = std::sqrt(6 / fan);
    FillUniformBetween(philox, -limit, limit, out);
  }
}

template <typename T>
void FillIntegers(float value, absl::Span<char> out) {
  const T integer = static_cast<T>(value);
  for (size_t i = 0; i < out.size(); i += sizeof(T)) std::memcpy(&out[i], &integer, sizeof(T));
}

}  // namespace

void InitializeVariable(const v1::VariableSpec& variable, uint64_t seed, absl::Span<char> out) {
  const float value = variable.initializer().constant().value();
  switch (variable.dtype()) {
    case v1::DT_INT64:
      return FillIntegers<int64_t>(value, out);
    case v1::DT_INT32:
      return FillIntegers<int32_t>(value, out);
    case v1::DT_UINT8:
    case v1::DT_BOOL:
      return FillIntegers<uint8_t>(value, out);
    default:
      return InitializeVariable(variable, seed,
                                absl::MakeSpan(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)));
  }
}

void InitializeVariable(const v1::VariableSpec& variable, uint64_t seed, absl::Span<float> out) {
  const Philox philox(seed, StableHash(absl::StrCat("initializer/", variable.name())));
  const v1::Initializer& initializer = variable.initializer();
  const Fans fans = FansOf(variable);
  switch (initializer.kind_case()) {
    case v1::Initializer::kConstant:
      std::fill(out.begin(), out.end(), initializer.constant().value());
      return;
    case v1::Initializer::kUniform:
      return FillUniformBetween(philox, initializer.uniform().min(), initializer.uniform().max(), out);
    case v1::Initializer::kNormal:
      return FillNormalAround(philox, initializer.normal().mean(), initializer.normal().stddev(), out);
    case v1::Initializer::kTruncatedNormal:
      return FillTruncatedNormal(philox, initializer.truncated_normal().mean(), initializer.truncated_normal().stddev(),
                                 out);
    case v1::Initializer::kGlorot:
      return FillScaled(philox, initializer.glorot().normal(), fans.in + fans.out, out);
    case v1::Initializer::kHe:
      return FillScaled(philox, initializer.he().normal(), fans.in, out);
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  std::fill(out.begin(), out.end(), 0.0f);
}

}  // namespace lockstep
