#include "common/config/compression.h"

namespace lockstep {
namespace {

DataType TypeOf(CompressionConfig::Format format) {
  switch (format) {
    case CompressionConfig::BFLOAT16:
      return DT_BFLOAT16;
    case CompressionConfig::FLOAT16:
      return DT_HALF;
    default:
      return DT_FLOAT;
  }
}

}  // namespace

Compression CompressionOf(const CompressionConfig& config) {
  return {TypeOf(config.gradients()), TypeOf(config.values()), config.top_k().fraction()};
}

}  // namespace lockstep
