#ifndef LOCKSTEP_KERNELS_ROUNDING_H_
#define LOCKSTEP_KERNELS_ROUNDING_H_

#include <cstdint>

namespace lockstep {

// The 16-bit floating-point types. A float is rounded to the nearest number of the type, and a tie goes to the number
// whose last bit is zero. A finite number beyond the largest becomes the largest, with its sign. Infinities stay
// infinite. Every NaN becomes the same NaN (0x7fc0 or 0x7e00). Subnormal numbers get no special treatment.
enum class ShortFloat { kBfloat16, kHalf };

// values[i] = values[i] rounded.
void RoundToShort(ShortFloat type, int64_t n, float* values);
// out[i] = the bits of values[i], rounded.
void EncodeShort(ShortFloat type, int64_t n, const float* values, uint16_t* out);
// Decodes little-endian bytes exactly, at any alignment.
void DecodeShort(ShortFloat type, int64_t n, const char* bytes, float* out);
// out[i] += the i-th decoded number.
void DecodeAndAddShort(ShortFloat type, int64_t n, const char* bytes, float* out);

// out[i] += the i-th float of `bytes`, at any alignment.
void AddFloats(int64_t n, const char* bytes, float* out);

// Returns true if no value is infinite or NaN.
bool AllValuesFinite(int64_t n, const float* values);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_ROUNDING_H_
