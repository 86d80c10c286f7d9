#include "lockstep/common/tensor/rounding.h"

#include "lockstep/kernels/rounding.h"

namespace lockstep {
namespace {

ShortFloat ShortOf(v1::DataType type) { return type == v1::DT_BFLOAT16 ? ShortFloat::kBfloat16 : ShortFloat::kHalf; }

}  // namespace

bool IsFloatType(v1::DataType type) { return type == v1::DT_FLOAT || type == v1::DT_BFLOAT16 || type == v1::DT_HALF; }

void RoundTo(v1::DataType type, int64_t n, float* values) {
  if (type == v1::DT_BFLOAT16 || type == v1::DT_HALF) RoundToShort(ShortOf(type), n, values);
}

void Encode16(v1::DataType type, int64_t n, const float* values, uint16_t* out) {
  EncodeShort(ShortOf(type), n, values, out);
}

void Decode16(v1::DataType type, int64_t n, const char* bytes, float* out) {
  DecodeShort(ShortOf(type), n, bytes, out);
}

void DecodeAndAdd16(v1::DataType type, int64_t n, const char* bytes, float* out) {
  DecodeAndAddShort(ShortOf(type), n, bytes, out);
}

}  // namespace lockstep
