#ifndef LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
#define LOCKSTEP_COMMON_TENSOR_ROUNDING_H_

#include <cstdint>

#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Rounding of floats to the type given as `type`: DT_FLOAT or one of the two 16-bit types, DT_BFLOAT16 and DT_HALF. A
// float is rounded to the nearest number of the type; a tie goes to the number whose last bit is zero. Finite numbers
// beyond the largest become the largest, with their sign; infinities do not change; every NaN becomes the same NaN
// (0x7fc0 or 0x7e00). Subnormal numbers get no special treatment. The bits of an element do not depend on its position
// or alignment.

// Returns true if `type` is DT_FLOAT, DT_BFLOAT16 or DT_HALF.
bool IsFloatType(v1::DataType type);

// Rounds each of the values in place. Does nothing for DT_FLOAT.
void RoundTo(v1::DataType type, int64_t n, float* values);

// Rounds each value and writes its bits to `out`. `type` must be a 16-bit type.
void Encode16(v1::DataType type, int64_t n, const float* values, uint16_t* out);
// The exact inverse of Encode16. Reads little-endian bytes at any alignment.
void Decode16(v1::DataType type, int64_t n, const char* bytes, float* out);
// Adds the i-th decoded number to out[i].
void DecodeAndAdd16(v1::DataType type, int64_t n, const char* bytes, float* out);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
