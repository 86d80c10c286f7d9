#ifndef LOCKSTEP_COMMON_TENSOR_DTYPE_H_
#define LOCKSTEP_COMMON_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Returns the number of bytes of one element; 0 for types without a fixed size (DT_STRING) and unknown ones.
size_t SizeOf(v1::DataType dtype);

// Returns "float32", "int64", ...; "invalid" for unknown types.
absl::string_view NameOf(v1::DataType dtype);

// Returns true for the types that an untrained variable may have in place of float32: int32, int64, uint8 and bool.
bool IsIntegerVariableType(v1::DataType dtype);

// Returns true for the types of variables: float32 and those of IsIntegerVariableType.
bool IsVariableType(v1::DataType dtype);

// Returns the type of a variable that declares this type: float32 if it declares none.
v1::DataType VariableType(v1::DataType declared);

// The DataType of a C++ type, such as DataTypeOf<float>::value.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr v1::DataType value = v1::DT_FLOAT;
};
template <>
struct DataTypeOf<double> {
  static constexpr v1::DataType value = v1::DT_DOUBLE;
};
template <>
struct DataTypeOf<int32_t> {
  static constexpr v1::DataType value = v1::DT_INT32;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr v1::DataType value = v1::DT_INT64;
};
template <>
struct DataTypeOf<uint8_t> {
  static constexpr v1::DataType value = v1::DT_UINT8;
};
template <>
struct DataTypeOf<bool> {
  static constexpr v1::DataType value = v1::DT_BOOL;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_DTYPE_H_
