#ifndef LOCKSTEP_KERNELS_ROUNDING_H_
#define LOCKSTEP_KERNELS_ROUNDING_H_

#include <cstdint>

namespace lockstep {

// The 16-bit types. A float is rounded to the nearest number of the type, ties to the one whose last bit is zero. A
// finite number beyond the largest becomes the largest, with its sign; an infinity stays one; every NaN becomes the
// same NaN (0x7fc0, 0x7e00). Subnormal numbers are treated like others.
enum class ShortFloat { kBfloat16, kHalf };

// values[i] = values[i] rounded.
void RoundToShort(ShortFloat type, int64_t n, float* values);
// out[i] = the bits of values[i], rounded.
void EncodeShort(ShortFloat type, int64_t n, const float* values, uint16_t* out);
// Decodes little-endian bytes at any alignment, exactly.
void DecodeShort(ShortFloat type, int64_t n, const char* bytes, float* out);
// out[i] += the i-th decoded number.
void DecodeAndAddShort(ShortFloat type, int64_t n, const char* bytes, float* out);

// out[i] += the i-th float of `bytes`, at any alignment.
void AddFloats(int64_t n, const char* bytes, float* out);

// True when no value is infinite or NaN.
bool AllValuesFinite(int64_t n, const float* values);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_ROUNDING_H_
