#include "lockstep/worker/data/example_order.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/worker/data/permutation.h"

namespace lockstep {
namespace {

// These limits keep R * B and the number of examples in an epoch within 63 bits.
constexpr int64_t kMaxExamples = int64_t{1} << 48;
constexpr int64_t kMaxBatch = int64_t{1} << 32;

}  // namespace

BatchSourceOptions TrainingBatches(const config::v1::RunSpec& config) {
  BatchSourceOptions options;
  options.replicas_to_aggregate = BatchesTogether(config.training());
  options.streams = ReadsStreams(config.training());
  options.seed = config.training().seed();
  options.epochs = config.input().epochs();
  return options;
}

uint64_t SeedOfStream(uint64_t seed, int64_t stream) {
  // The increment of splitmix64. Its multiples differ in the high bits as well as in the low ones.
  return seed + static_cast<uint64_t>(stream) * 0x9E3779B97F4A7C15u;
}

absl::StatusOr<ExampleOrder> ExampleOrder::Create(int64_t examples, const config::v1::InputConfig& config,
                                                  const BatchSourceOptions& options) {
  if (examples < 1 || examples > kMaxExamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", examples, " examples, must have between 1 and ", kMaxExamples));
  }
  if (config.batch_size() <= 0 || config.batch_size() > kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.batch_size is ", config.batch_size(), ", must be in [1, ", kMaxBatch, "]"));
  }
  if (options.replicas_to_aggregate <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.replicas_to_aggregate is ", options.replicas_to_aggregate, ", must be above 0"));
  }
  RETURN_IF_ERROR(CheckBatchSize(config, options.replicas_to_aggregate, examples));
  if (options.epochs < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the input ends after ", options.epochs, " epochs"));
  }
  return ExampleOrder(examples, config, options);
}

ExampleOrder::ExampleOrder(int64_t examples, const config::v1::InputConfig& config, const BatchSourceOptions& options)
    : options_(options),
      examples_(examples),
      batch_size_(config.batch_size()),
      shuffle_(!config.no_shuffle()),
      examples_per_epoch_(examples) {
  if (config.last_batch() == config::v1::InputConfig::DROP) {
    examples_per_epoch_ -= examples % (options.replicas_to_aggregate * config.batch_size());
  }
}

absl::StatusOr<std::vector<int64_t>> ExampleOrder::Indices(int64_t step, int64_t slot) const {
  if (options_.streams) return StreamIndices(step, slot);
  const int64_t replicas = options_.replicas_to_aggregate;
  const int64_t max_step = std::numeric_limits<int64_t>::max() / (replicas * batch_size_) - 1;
  if (step < 0 || step > max_step || slot < 0 || slot >= replicas) {
    return absl::InvalidArgumentError(absl::StrCat("batch of step ", step, ", slot ", slot, "; steps are in [0, ",
                                                   max_step, "], slots in [0, ", replicas, ")"));
  }
  const int64_t first = (step * replicas + slot) * batch_size_;
  if (Ends(first)) {
    return absl::OutOfRangeError(absl::StrCat("step ", step, ", slot ", slot, " is beyond the ", options_.epochs,
                                              " epochs of ", examples_per_epoch_, " examples"));
  }
  return IndicesFrom(first, options_.seed);
}

absl::StatusOr<std::vector<int64_t>> ExampleOrder::StreamIndices(int64_t position, int64_t stream) const {
  const int64_t max_position = std::numeric_limits<int64_t>::max() / batch_size_ - 1;
  if (position < 0 || position > max_position || stream < 0) {
    return absl::InvalidArgumentError(absl::StrCat("batch ", position, " of stream ", stream, "; positions are in [0, ",
                                                   max_position, "], streams are counted from 0"));
  }
  const int64_t first = position * batch_size_;
  if (Ends(first)) {
    return absl::OutOfRangeError(absl::StrCat("batch ", position, " of stream ", stream, " is beyond the ",
                                              options_.epochs, " epochs of ", examples_per_epoch_, " examples"));
  }
  return IndicesFrom(first, SeedOfStream(options_.seed, stream));
}

std::vector<int64_t> ExampleOrder::IndicesFrom(int64_t first, uint64_t seed) const {
  std::vector<int64_t> indices;
  indices.reserve(batch_size_);
  for (int64_t p = first; p < first + batch_size_;) {
    const int64_t epoch = p / examples_per_epoch_;
    const int64_t end = std::min(first + batch_size_ - p, (epoch + 1) * examples_per_epoch_ - p) + p;
    const Permutation permutation(examples_, seed, epoch);
    for (; p < end; ++p) {
      const int64_t place = p - epoch * examples_per_epoch_;
      indices.push_back(shuffle_ ? permutation.At(place) : place);
    }
  }
  return indices;
}

}  // namespace lockstep
