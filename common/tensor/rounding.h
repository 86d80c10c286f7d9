#ifndef LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
#define LOCKSTEP_COMMON_TENSOR_ROUNDING_H_

#include <cstdint>

#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Rounding to float32 and the two 16-bit types, DT_BFLOAT16 and DT_HALF, given as `type`. A float is rounded to the
// nearest number of the type; a tie goes to the number whose last bit is zero. Finite numbers beyond the largest become
// the largest, with their sign; infinities do not change; every NaN becomes the same NaN (0x7fc0, 0x7e00). Subnormal
// numbers are not special. Each element's bits are independent of its position and alignment.

// Returns true if `type` is one of these three types.
bool IsFloatType(v1::DataType type);

// Rounds each of the values in place. Does nothing for DT_FLOAT.
void RoundTo(v1::DataType type, int64_t n, float* values);

// Writes the bits of each rounded value. `type` must be a 16-bit type.
void Encode16(v1::DataType type, int64_t n, const float* values, uint16_t* out);
// The inverse of Encode16, from little-endian bytes at any alignment. Exact.
void Decode16(v1::DataType type, int64_t n, const char* bytes, float* out);
// Adds the i-th decoded number to out[i].
void DecodeAndAdd16(v1::DataType type, int64_t n, const char* bytes, float* out);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
