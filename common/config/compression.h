#ifndef LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_
#define LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_

#include "proto/config.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep {

// What gradients and values travel as: DT_FLOAT, DT_BFLOAT16 or DT_HALF. A value type.
struct Compression {
  DataType gradients = DT_FLOAT;
  DataType values = DT_FLOAT;
};

// Of a validated configuration.
Compression CompressionOf(const CompressionConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_
