#ifndef LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
#define LOCKSTEP_COMMON_TENSOR_ROUNDING_H_

#include <cstdint>

#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// float32 and the two 16-bit types, DT_BFLOAT16 and DT_HALF, which every function here takes as `type`. A float is
// rounded to the nearest number of the type, of two equally near ones to the one whose last bit is zero. A finite
// number beyond the largest becomes the largest, with its sign; an infinity stays one; every NaN becomes the same
// NaN (0x7fc0, 0x7e00). Subnormal numbers count like others. Element by element: bits depend on neither position
// nor alignment.

// Whether `type` is one of the three.
bool IsFloatType(v1::DataType type);

// values[i] = values[i] rounded. Nothing happens for DT_FLOAT.
void RoundTo(v1::DataType type, int64_t n, float* values);

// The bits of values[i], rounded. A 16-bit type.
void Encode16(v1::DataType type, int64_t n, const float* values, uint16_t* out);
// The reverse, from little-endian bytes at any alignment. Exact.
void Decode16(v1::DataType type, int64_t n, const char* bytes, float* out);
// out[i] += the i-th of them.
void DecodeAndAdd16(v1::DataType type, int64_t n, const char* bytes, float* out);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_ROUNDING_H_
