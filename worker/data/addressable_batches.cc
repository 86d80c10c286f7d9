#include "lockstep/worker/data/addressable_batches.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/worker/data/augmentation.h"
#include "lockstep/worker/data/normalization.h"
#include "lockstep/worker/data/permutation.h"

namespace lockstep {
namespace {

// 2^32 floats are 16 GiB.
constexpr int64_t kMaxBatchElements = int64_t{1} << 32;

class AddressableBatches : public BatchSource {
 public:
  AddressableBatches(std::shared_ptr<const Dataset> dataset, const config::v1::InputConfig& config,
                     const BatchSourceOptions& options, int64_t examples_per_epoch, Augmentation augmentation)
      : dataset_(std::move(dataset)),
        options_(options),
        batch_size_(config.batch_size()),
        shuffle_(!config.no_shuffle()),
        examples_per_epoch_(examples_per_epoch),
        augmentation_(augmentation) {}

  const ExampleSpec& spec() const override { return dataset_->spec(); }

  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    ASSIGN_OR_RETURN(const std::vector<int64_t> indices, Indices(step, slot));
    Batch batch;
    RETURN_IF_ERROR(dataset_->Read(indices, &batch));
    augmentation_.Apply(step, slot, &batch);
    return batch;
  }

 private:
  // Returns the indices of the batch's examples.
  absl::StatusOr<std::vector<int64_t>> Indices(int64_t step, int64_t slot) const {
    const int64_t replicas = options_.replicas_to_aggregate;
    const int64_t max_step = std::numeric_limits<int64_t>::max() / (replicas * batch_size_) - 1;
    if (step < 0 || step > max_step || slot < 0 || slot >= replicas) {
      return absl::InvalidArgumentError(absl::StrCat("batch of step ", step, ", slot ", slot, "; steps are in [0, ",
                                                     max_step, "], slots in [0, ", replicas, ")"));
    }
    const int64_t first = (step * replicas + slot) * batch_size_;
    if (options_.epochs > 0 && (first + batch_size_ - 1) / examples_per_epoch_ >= options_.epochs) {
      return absl::OutOfRangeError(absl::StrCat("step ", step, ", slot ", slot, " is beyond the ", options_.epochs,
                                                " epochs of ", examples_per_epoch_, " examples"));
    }
    std::vector<int64_t> indices;
    indices.reserve(batch_size_);
    for (int64_t p = first; p < first + batch_size_;) {
      const int64_t epoch = p / examples_per_epoch_;
      const int64_t end = std::min(first + batch_size_ - p, (epoch + 1) * examples_per_epoch_ - p) + p;
      const Permutation permutation(dataset_->size(), options_.seed, epoch);
      for (; p < end; ++p) {
        const int64_t place = p - epoch * examples_per_epoch_;
        indices.push_back(shuffle_ ? permutation.At(place) : place);
      }
    }
    return indices;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const BatchSourceOptions options_;
  const int64_t batch_size_;
  const bool shuffle_;
  const int64_t examples_per_epoch_;
  const Augmentation augmentation_;
};

absl::Status CheckSizes(const Dataset& dataset, const config::v1::InputConfig& config,
                        const BatchSourceOptions& options) {
  const int64_t elements = dataset.spec().features_shape.num_elements() + dataset.spec().labels_shape.num_elements();
  const int64_t max_batch = kMaxBatchElements / elements;
  if (config.batch_size() <= 0 || config.batch_size() > max_batch) {
    return absl::InvalidArgumentError(absl::StrCat("input.batch_size is ", config.batch_size(), ", must be in [1, ",
                                                   max_batch, "] for examples of ", elements, " elements"));
  }
  if (options.replicas_to_aggregate <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.replicas_to_aggregate is ", options.replicas_to_aggregate, ", must be above 0"));
  }
  RETURN_IF_ERROR(CheckBatchSize(config, options.replicas_to_aggregate, dataset.size()));
  if (options.epochs < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the input ends after ", options.epochs, " epochs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> CreateBatchSource(std::shared_ptr<const Dataset> dataset,
                                                               const config::v1::InputConfig& config,
                                                               const BatchSourceOptions& options) {
  RETURN_IF_ERROR(CheckSizes(*dataset, config, options));
  int64_t examples_per_epoch = dataset->size();
  if (config.last_batch() == config::v1::InputConfig::DROP) {
    const int64_t global_batch = options.replicas_to_aggregate * config.batch_size();
    examples_per_epoch -= examples_per_epoch % global_batch;
  }
  ASSIGN_OR_RETURN(const Normalization normalization, Normalization::Create(config.normalization()));
  ASSIGN_OR_RETURN(Augmentation augmentation,
                   Augmentation::Create(config.augmentation(), dataset->spec(), normalization, options.seed));
  return std::make_unique<AddressableBatches>(std::move(dataset), config, options, examples_per_epoch, augmentation);
}

}  // namespace lockstep
