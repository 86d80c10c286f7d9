#ifndef LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_
#define LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_

#include "proto/config.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep {

// How gradients and values travel. A value type.
struct Compression {
  // DT_FLOAT, DT_BFLOAT16 or DT_HALF.
  DataType gradients = DT_FLOAT;
  DataType values = DT_FLOAT;
  // The part of each segment of a gradient that is sent; 0: all of it.
  double top_k = 0;

  bool any() const { return gradients != DT_FLOAT || values != DT_FLOAT || top_k > 0; }
};

// Of a validated configuration.
Compression CompressionOf(const CompressionConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_COMPRESSION_H_
