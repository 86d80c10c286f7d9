#ifndef LOCKSTEP_COMMON_STEP_COMPRESSION_H_
#define LOCKSTEP_COMMON_STEP_COMPRESSION_H_

#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The types and the compression with which gradients and values are sent. A value type.
struct Compression {
  // DT_FLOAT, DT_BFLOAT16 or DT_HALF.
  v1::DataType gradients = v1::DT_FLOAT;
  v1::DataType values = v1::DT_FLOAT;
  // The fraction of each gradient segment that is sent; 0 sends all of it.
  double top_k = 0;

  bool any() const { return gradients != v1::DT_FLOAT || values != v1::DT_FLOAT || top_k > 0; }
};

// Returns the compression of a validated configuration.
Compression CompressionOf(const config::v1::CompressionConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_COMPRESSION_H_
