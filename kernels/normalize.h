#ifndef LOCKSTEP_KERNELS_NORMALIZE_H_
#define LOCKSTEP_KERNELS_NORMALIZE_H_

#include <cstdint>

namespace lockstep {

// The normalization (x - mean) / stddev, in float arithmetic.
struct ByteNormalization {
  // Decides once whether to multiply or to divide. Except for a few values of stddev, a corrected product has the same
  // bits as the quotient.
  ByteNormalization(float mean, float stddev);

  float mean;
  float stddev;
  // 1 / stddev. `multiplies` is true if x * inverse, corrected by its remainder, equals x / stddev for all bytes.
  float inverse;
  bool multiplies;
};

// out[i] = bytes[i] / 255, normalized.
void NormalizeBytes(const ByteNormalization& normalization, int64_t size, const uint8_t* bytes, float* out);
// values[i] normalized, in place.
void NormalizeFloats(float mean, float stddev, int64_t size, float* values);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NORMALIZE_H_
