#include "common/tensor/dtype.h"

namespace lockstep {

size_t SizeOf(DataType dtype) {
  switch (dtype) {
    case DT_BOOL:
    case DT_INT8:
    case DT_UINT8:
      return 1;
    case DT_BFLOAT16:
    case DT_HALF:
    case DT_INT16:
    case DT_UINT16:
      return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
      return 4;
    case DT_DOUBLE:
    case DT_INT64:
    case DT_UINT64:
      return 8;
    default:
      return 0;
  }
}

absl::string_view NameOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return "float32";
    case DT_DOUBLE:
      return "float64";
    case DT_INT32:
      return "int32";
    case DT_UINT8:
      return "uint8";
    case DT_INT16:
      return "int16";
    case DT_INT8:
      return "int8";
    case DT_STRING:
      return "string";
    case DT_INT64:
      return "int64";
    case DT_BOOL:
      return "bool";
    case DT_BFLOAT16:
      return "bfloat16";
    case DT_UINT16:
      return "uint16";
    case DT_HALF:
      return "float16";
    case DT_UINT32:
      return "uint32";
    case DT_UINT64:
      return "uint64";
    default:
      return "invalid";
  }
}

}  // namespace lockstep
