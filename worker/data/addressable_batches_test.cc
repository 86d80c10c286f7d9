#include "lockstep/worker/data/addressable_batches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/formats/synthetic.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A dataset in which example i has the value i.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : Dataset(Spec(), size, /*has_weights=*/true, /*crc32c=*/0) {}

 private:
  static ExampleSpec Spec() {
    ExampleSpec spec;
    spec.features_dtype = v1::DT_INT32;
    spec.features_shape = Shape({1});
    spec.classes = 1;
    return spec;
  }
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out->features.flat<int32_t>()[i] = static_cast<int32_t>(indices[i]);
      out->labels.flat<int32_t>()[i] = 0;
      out->weights.flat<float>()[i] = static_cast<float>(indices[i]);
    }
    return absl::OkStatus();
  }
};

config::v1::InputConfig Config(int64_t batch_size,
                               config::v1::InputConfig::LastBatch last_batch = config::v1::InputConfig::SPAN) {
  config::v1::InputConfig config;
  config.set_batch_size(batch_size);
  config.set_last_batch(last_batch);
  return config;
}

BatchSourceOptions Options(int64_t replicas, uint64_t seed = 1) {
  BatchSourceOptions options;
  options.replicas_to_aggregate = replicas;
  options.seed = seed;
  return options;
}

std::unique_ptr<BatchSource> Create(int64_t examples, const config::v1::InputConfig& config,
                                    const BatchSourceOptions& options) {
  auto source = CreateBatchSource(std::make_shared<Numbers>(examples), config, options);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

std::vector<int> Get(BatchSource* source, int64_t step, int64_t slot) {
  const absl::StatusOr<Batch> batch = source->Get(step, slot);
  EXPECT_TRUE(batch.ok()) << batch.status();
  const auto values = batch->features.flat<int32_t>();
  return {values.begin(), values.end()};
}

// Returns the examples in the order of step and slot.
std::vector<int> Stream(BatchSource* source, int64_t steps, int64_t replicas) {
  std::vector<int> stream;
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t slot = 0; slot < replicas; ++slot) {
      const std::vector<int> batch = Get(source, step, slot);
      stream.insert(stream.end(), batch.begin(), batch.end());
    }
  }
  return stream;
}

TEST(AddressableBatchesTest, EveryEpochHasEveryExampleOnce) {
  for (const int64_t examples : {1, 7, 10, 64}) {
    for (const int64_t batch_size : {1, 3, 16}) {
      for (const int64_t replicas : {1, 2, 5}) {
        auto source = Create(examples, Config(batch_size), Options(replicas));
        const int64_t steps = 5 * examples / (batch_size * replicas) + 1;
        const std::vector<int> stream = Stream(source.get(), steps, replicas);
        for (size_t start = 0; start + examples <= stream.size(); start += examples) {
          std::vector<int> epoch(stream.begin() + start, stream.begin() + start + examples);
          std::sort(epoch.begin(), epoch.end());
          for (int i = 0; i < examples; ++i) ASSERT_EQ(epoch[i], i);
        }
      }
    }
  }
}

TEST(AddressableBatchesTest, DropOmitsAnUnfilledGlobalBatch) {
  // Global batches of 6 from 20 examples: 3 steps per epoch, 2 examples left out.
  auto source = Create(20, Config(3, config::v1::InputConfig::DROP), Options(2));
  std::map<int, int> left_out;
  for (int epoch = 0; epoch < 30; ++epoch) {
    std::vector<int> count(20);
    for (int64_t step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      for (const int64_t slot : {0, 1}) {
        for (const int example : Get(source.get(), step, slot)) ++count[example];
      }
    }
    EXPECT_EQ(std::count(count.begin(), count.end(), 1), 18);
    EXPECT_EQ(std::count(count.begin(), count.end(), 0), 2);
    for (int i = 0; i < 20; ++i) left_out[i] += count[i] == 0;
  }
  // The two examples that are left out differ from epoch to epoch.
  for (const auto& [example, times] : left_out) EXPECT_LT(times, 15) << example;
}

TEST(AddressableBatchesTest, KeepsFileOrderWithoutShuffling) {
  config::v1::InputConfig config = Config(3);
  config.set_no_shuffle(true);
  auto source = Create(5, config, Options(2));
  EXPECT_THAT(Get(source.get(), 0, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(Get(source.get(), 0, 1), ElementsAre(3, 4, 0));
  EXPECT_THAT(Get(source.get(), 1, 0), ElementsAre(1, 2, 3));
}

TEST(AddressableBatchesTest, ABatchDependsOnItsAddressAlone) {
  config::v1::InputConfig::Synthetic synthetic;
  synthetic.set_examples(50);
  synthetic.set_classes(3);
  for (const int dim : {8, 8, 1}) synthetic.add_shape(dim);
  config::v1::InputConfig config = Config(4);
  config.mutable_augmentation()->set_flip(true);
  config.mutable_augmentation()->set_crop_padding(1);
  std::vector<std::pair<int64_t, int64_t>> addresses;
  for (int64_t step = 0; step < 20; ++step) {
    for (int64_t slot = 0; slot < 3; ++slot) addresses.push_back({step, slot});
  }
  std::map<std::pair<int64_t, int64_t>, std::string> bytes;
  for (int order = 0; order < 3; ++order) {
    if (order == 1) std::reverse(addresses.begin(), addresses.end());
    if (order == 2) std::rotate(addresses.begin(), addresses.begin() + 17, addresses.end());
    auto dataset = CreateSyntheticDataset(synthetic, 5);
    auto source = CreateBatchSource(*std::move(dataset), config, Options(3));
    ASSERT_TRUE(source.ok()) << source.status();
    for (const auto& [step, slot] : addresses) {
      const absl::StatusOr<Batch> batch = (*source)->Get(step, slot);
      ASSERT_TRUE(batch.ok());
      const std::string value = std::string(batch->features.bytes()) + std::string(batch->labels.bytes());
      const auto inserted = bytes.insert({{step, slot}, value});
      EXPECT_EQ(inserted.first->second, value);
    }
  }
  EXPECT_EQ(bytes.size(), 60);
}

TEST(AddressableBatchesTest, TheSeedChangesTheOrder) {
  auto a = Create(1000, Config(100), Options(1, 1));
  auto b = Create(1000, Config(100), Options(1, 2));
  EXPECT_NE(Get(a.get(), 0, 0), Get(b.get(), 0, 0));
}

TEST(AddressableBatchesTest, CarriesWeights) {
  auto source = Create(10, Config(4), Options(1));
  const Batch batch = *source->Get(3, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(batch.weights.flat<float>()[i], batch.features.flat<int32_t>()[i]);
}

TEST(AddressableBatchesTest, ABoundedInputEndsWithOutOfRange) {
  BatchSourceOptions options = Options(1);
  options.epochs = 2;
  auto source = Create(10, Config(4), options);
  EXPECT_TRUE(source->Get(4, 0).ok());
  const absl::Status status = source->Get(5, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 5, slot 0 is beyond the 2 epochs of 10"));
}

TEST(AddressableBatchesTest, RefusesAddressesThatDoNotExist) {
  auto source = Create(10, Config(4), Options(2));
  for (const auto& [step, slot] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 0}, {0, -1}, {0, 2}, {INT64_MAX, 0}, {INT64_MAX / 8, 0}, {INT64_MIN, INT64_MIN}}) {
    EXPECT_EQ(source->Get(step, slot).status().code(), absl::StatusCode::kInvalidArgument) << step << " " << slot;
  }
  EXPECT_TRUE(source->Get(INT64_MAX / 8 - 1, 1).ok());
}

TEST(AddressableBatchesTest, RefusesSizesThatMakeNoSense) {
  const auto status = [](const config::v1::InputConfig& config, const BatchSourceOptions& options) {
    return CreateBatchSource(std::make_shared<Numbers>(10), config, options).status();
  };
  EXPECT_THAT(std::string(status(Config(0), Options(1)).message()), HasSubstr("input.batch_size is 0"));
  EXPECT_THAT(std::string(status(Config(INT64_MAX), Options(1)).message()), HasSubstr("input.batch_size is 9223"));
  EXPECT_THAT(std::string(status(Config(1), Options(0)).message()), HasSubstr("replicas_to_aggregate is 0"));
  EXPECT_THAT(std::string(status(Config(4), Options(INT64_MAX)).message()), HasSubstr("replicas_to_aggregate is 9223"));
  EXPECT_THAT(std::string(status(Config(6, config::v1::InputConfig::DROP), Options(2)).message()),
              HasSubstr("10 examples, one step needs 12"));
}

TEST(AddressableBatchesTest, EachStreamHasAllExamplesInOwnOrder) {
  BatchSourceOptions options = Options(1);
  options.streams = true;
  options.epochs = 2;
  const auto streams = Create(20, Config(10), options);
  const auto slots = Create(20, Config(10), Options(1));
  std::vector<int> first = Get(streams.get(), 0, 0);
  EXPECT_EQ(first, Get(slots.get(), 0, 0)) << "stream 0 has the batches of slot 0";
  EXPECT_NE(first, Get(streams.get(), 0, 1));
  for (const int64_t stream : {0, 1, 500}) {
    std::vector<int> epoch = Get(streams.get(), 0, stream);
    for (const int example : Get(streams.get(), 1, stream)) epoch.push_back(example);
    std::sort(epoch.begin(), epoch.end());
    std::vector<int> all(20);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(epoch, all) << "stream " << stream;
    EXPECT_TRUE(absl::IsOutOfRange(streams->Get(4, stream).status())) << "each stream ends after its epochs";
  }
  EXPECT_TRUE(absl::IsInvalidArgument(streams->Get(0, -1).status()));
}

}  // namespace
}  // namespace lockstep
