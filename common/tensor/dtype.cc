#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

size_t SizeOf(v1::DataType dtype) {
  switch (dtype) {
    case v1::DT_BOOL:
    case v1::DT_INT8:
    case v1::DT_UINT8:
      return 1;
    case v1::DT_BFLOAT16:
    case v1::DT_HALF:
    case v1::DT_INT16:
    case v1::DT_UINT16:
      return 2;
    case v1::DT_FLOAT:
    case v1::DT_INT32:
    case v1::DT_UINT32:
      return 4;
    case v1::DT_DOUBLE:
    case v1::DT_INT64:
    case v1::DT_UINT64:
      return 8;
    default:
      return 0;
  }
}

absl::string_view NameOf(v1::DataType dtype) {
  switch (dtype) {
    case v1::DT_FLOAT:
      return "float32";
    case v1::DT_DOUBLE:
      return "float64";
    case v1::DT_INT32:
      return "int32";
    case v1::DT_UINT8:
      return "uint8";
    case v1::DT_INT16:
      return "int16";
    case v1::DT_INT8:
      return "int8";
    case v1::DT_STRING:
      return "string";
    case v1::DT_INT64:
      return "int64";
    case v1::DT_BOOL:
      return "bool";
    case v1::DT_BFLOAT16:
      return "bfloat16";
    case v1::DT_UINT16:
      return "uint16";
    case v1::DT_HALF:
      return "float16";
    case v1::DT_UINT32:
      return "uint32";
    case v1::DT_UINT64:
      return "uint64";
    default:
      return "invalid";
  }
}

bool IsIntegerVariableType(v1::DataType dtype) {
  return dtype == v1::DT_INT32 || dtype == v1::DT_INT64 || dtype == v1::DT_UINT8 || dtype == v1::DT_BOOL;
}

bool IsVariableType(v1::DataType dtype) { return dtype == v1::DT_FLOAT || IsIntegerVariableType(dtype); }

v1::DataType VariableType(v1::DataType declared) { return declared == v1::DT_INVALID ? v1::DT_FLOAT : declared; }

}  // namespace lockstep
