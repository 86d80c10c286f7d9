#include "lockstep/worker/data/normalization.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/normalize.h"

namespace lockstep {
namespace {

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

  void AddPreparation(v1::DataDigest* digest) const override { dataset_->AddPreparation(digest); }
  int64_t rows() const override { return dataset_->rows(); }
  Row RowAt(int64_t i) const override { return dataset_->RowAt(i); }
  std::string id_name() const override { return dataset_->id_name(); }
  absl::StatusOr<std::string> ReadId(int64_t i) const override { return dataset_->ReadId(i); }

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
  NormalizeFloats(mean(), stddev(), static_cast<int64_t>(values.size()), values.data());
}

void Normalization::FromBytes(absl::Span<const uint8_t> bytes, float* out) const {
  NormalizeBytes(kernel_, static_cast<int64_t>(bytes.size()), bytes.data(), out);
}

std::unique_ptr<Dataset> NormalizeFeatures(std::unique_ptr<Dataset> dataset, Normalization normalization) {
  if (normalization.identity() || dataset->spec().features_dtype != v1::DT_FLOAT) return dataset;
  return std::make_unique<NormalizedDataset>(std::move(dataset), normalization);
}

}  // namespace lockstep
