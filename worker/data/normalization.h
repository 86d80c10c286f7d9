#ifndef LOCKSTEP_WORKER_DATA_NORMALIZATION_H_
#define LOCKSTEP_WORKER_DATA_NORMALIZATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/kernels/normalize.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// (x - mean) / stddev in float arithmetic, the same for training and evaluation. A value type.
class Normalization {
 public:
  // Creates a normalization that leaves values unchanged.
  Normalization() = default;

  // Returns InvalidArgument unless mean is finite and stddev is finite and positive.
  static absl::StatusOr<Normalization> Create(const config::v1::InputConfig::Normalization& config);

  bool identity() const { return mean() == 0.0f && stddev() == 1.0f; }
  float operator()(float x) const { return (x - mean()) / stddev(); }
  void Apply(absl::Span<float> values) const;

  // Converts each byte b of an image to b / 255, normalized.
  void FromBytes(absl::Span<const uint8_t> bytes, float* out) const;

 private:
  Normalization(float mean, float stddev) : kernel_(mean, stddev) {}

  float mean() const { return kernel_.mean; }
  float stddev() const { return kernel_.stddev; }

  ByteNormalization kernel_{0.0f, 1.0f};
};

// Returns `dataset` with normalized features. Integer features are unchanged.
std::unique_ptr<Dataset> NormalizeFeatures(std::unique_ptr<Dataset> dataset, Normalization normalization);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_NORMALIZATION_H_
