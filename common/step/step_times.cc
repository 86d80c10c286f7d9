#include "lockstep/common/step/step_times.h"

namespace lockstep {
namespace {

constexpr int kBits = 16, kMantissaBits = 11;
constexpr uint64_t kMantissa = (1 << kMantissaBits) - 1;
constexpr uint64_t kLargest = kMantissa << 31;

uint64_t EncodeOne(absl::Duration time) {
  const int64_t microseconds = absl::ToInt64Microseconds(time);
  if (microseconds <= 0) return 0;
  auto mantissa = static_cast<uint64_t>(microseconds);
  if (mantissa > kLargest) mantissa = kLargest;
  uint64_t exponent = 0;
  while (mantissa > kMantissa) {
    mantissa >>= 1;
    ++exponent;
  }
  return exponent << kMantissaBits | mantissa;
}

absl::Duration DecodeOne(uint64_t number) {
  number &= (1 << kBits) - 1;
  return absl::Microseconds(static_cast<int64_t>((number & kMantissa) << (number >> kMantissaBits)));
}

}  // namespace

uint64_t EncodeStepTimes(const StepTimes& times) {
  return EncodeOne(times.batch) | EncodeOne(times.compute) << kBits | EncodeOne(times.send) << 2 * kBits |
         EncodeOne(times.wait) << 3 * kBits;
}

StepTimes DecodeStepTimes(uint64_t encoded) {
  return {DecodeOne(encoded), DecodeOne(encoded >> kBits), DecodeOne(encoded >> 2 * kBits),
          DecodeOne(encoded >> 3 * kBits)};
}

}  // namespace lockstep
