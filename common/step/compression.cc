#include "lockstep/common/step/compression.h"

namespace lockstep {
namespace {

v1::DataType TypeOf(config::v1::CompressionConfig::Format format) {
  switch (format) {
    case config::v1::CompressionConfig::BFLOAT16:
      return v1::DT_BFLOAT16;
    case config::v1::CompressionConfig::FLOAT16:
      return v1::DT_HALF;
    default:
      return v1::DT_FLOAT;
  }
}

}  // namespace

Compression CompressionOf(const config::v1::CompressionConfig& config) {
  return {TypeOf(config.gradients()), TypeOf(config.values()), config.top_k().fraction()};
}

}  // namespace lockstep
