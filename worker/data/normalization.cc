#include "lockstep/worker/data/normalization.h"

#include <immintrin.h>

#include <cmath>
#include <utility>

#include "Eigen/Core"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr int kLanes = 8;

// byte / 255, rounded as a division rounds it, without one: the product with 1/255, and its remainder's (Markstein's
// theorem; the test goes through all 256 bytes).
inline __m256 FractionsOf255(const uint8_t* in) {
  const __m256 byte = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
  const __m256 inverse = _mm256_set1_ps(1.0f / 255.0f);
  const __m256 quotient = _mm256_mul_ps(byte, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, _mm256_set1_ps(255.0f), byte), inverse, quotient);
}

class NormalizedDataset : public Dataset {
 public:
  NormalizedDataset(std::unique_ptr<Dataset> dataset, Normalization normalization)
      : Dataset(dataset->spec(), dataset->size(), dataset->has_weights(), dataset->digest().crc32c(),
                dataset->has_labels()),
        dataset_(std::move(dataset)),
        normalization_(normalization) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    RETURN_IF_ERROR(dataset_->Read(indices, out));
    normalization_.Apply(out->features.flat<float>());
    return absl::OkStatus();
  }

  const std::unique_ptr<Dataset> dataset_;
  const Normalization normalization_;
};

}  // namespace

absl::StatusOr<Normalization> Normalization::Create(const config::v1::InputConfig::Normalization& config) {
  const float stddev = config.has_stddev() ? config.stddev() : 1.0f;
  if (!std::isfinite(config.mean()) || !std::isfinite(stddev) || stddev <= 0.0f) {
    return absl::InvalidArgumentError(absl::StrCat("input.normalization has mean ", config.mean(), " and stddev ",
                                                   stddev, "; both must be finite and stddev positive"));
  }
  return Normalization(config.mean(), stddev);
}

void Normalization::Apply(absl::Span<float> values) const {
  Eigen::Map<Eigen::ArrayXf> map(values.data(), static_cast<Eigen::Index>(values.size()));
  map = (map - mean_) / stddev_;
}

void Normalization::FromBytes(absl::Span<const uint8_t> bytes, float* out) const {
  const uint8_t* in = bytes.data();
  const uint8_t* const end = in + bytes.size();
  for (; end - in >= kLanes; in += kLanes, out += kLanes) _mm256_storeu_ps(out, FractionsOf255(in));
  for (; in < end; ++in, ++out) *out = static_cast<float>(*in) / 255.0f;
  if (!identity()) Apply({out - bytes.size(), bytes.size()});
}

std::unique_ptr<Dataset> NormalizeFeatures(std::unique_ptr<Dataset> dataset, Normalization normalization) {
  if (normalization.identity() || dataset->spec().features_dtype != v1::DT_FLOAT) return dataset;
  return std::make_unique<NormalizedDataset>(std::move(dataset), normalization);
}

}  // namespace lockstep
