#include "lockstep/worker/data/addressable_batches.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/augmentation.h"
#include "lockstep/worker/data/normalization.h"

namespace lockstep {
namespace {

// 2^32 floats are 16 GiB.
constexpr int64_t kMaxBatchElements = int64_t{1} << 32;

class AddressableBatches : public BatchSource {
 public:
  AddressableBatches(std::shared_ptr<const Dataset> dataset, const ExampleOrder& order, Augmentation augmentation)
      : dataset_(std::move(dataset)), order_(order), augmentation_(augmentation) {}

  const ExampleSpec& spec() const override { return dataset_->spec(); }

  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    ASSIGN_OR_RETURN(const std::vector<int64_t> indices, order_.Indices(step, slot));
    Batch batch;
    RETURN_IF_ERROR(dataset_->Read(indices, &batch));
    augmentation_.Apply(step, slot, &batch);
    return batch;
  }

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const ExampleOrder order_;
  const Augmentation augmentation_;
};

absl::Status CheckBatchElements(const Dataset& dataset, int64_t batch_size) {
  const int64_t elements = dataset.spec().features_shape.num_elements() + dataset.spec().labels_shape.num_elements();
  const int64_t max_batch = kMaxBatchElements / elements;
  if (batch_size > 0 && batch_size <= max_batch) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input.batch_size is ", batch_size, ", must be in [1, ", max_batch,
                                                 "] for examples of ", elements, " elements"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> CreateBatchSource(std::shared_ptr<const Dataset> dataset,
                                                               const config::v1::InputConfig& config,
                                                               const BatchSourceOptions& options) {
  RETURN_IF_ERROR(CheckBatchElements(*dataset, config.batch_size()));
  ASSIGN_OR_RETURN(const ExampleOrder order, ExampleOrder::Create(dataset->size(), config, options));
  ASSIGN_OR_RETURN(const Normalization normalization, Normalization::Create(config.normalization()));
  ASSIGN_OR_RETURN(Augmentation augmentation,
                   Augmentation::Create(config.augmentation(), dataset->spec(), normalization, options.seed));
  return std::make_unique<AddressableBatches>(std::move(dataset), order, augmentation);
}

}  // namespace lockstep
