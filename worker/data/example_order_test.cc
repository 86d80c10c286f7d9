#include "lockstep/worker/data/example_order.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ExampleOrder> Create(int64_t examples, int64_t batch_size, int64_t replicas, int64_t epochs = 0,
                                    bool shuffle = true) {
  config::v1::InputConfig config;
  config.set_batch_size(batch_size);
  config.set_no_shuffle(!shuffle);
  BatchSourceOptions options;
  options.replicas_to_aggregate = replicas;
  options.seed = 1;
  options.epochs = epochs;
  return ExampleOrder::Create(examples, config, options);
}

TEST(ExampleOrderTest, AnEpochHasEveryExampleOnce) {
  const ExampleOrder order = Create(12, 3, 2).value();
  std::set<int64_t> seen;
  for (int64_t step = 0; step < 2; ++step) {
    for (int64_t slot = 0; slot < 2; ++slot) {
      const std::vector<int64_t> indices = order.Indices(step, slot).value();
      seen.insert(indices.begin(), indices.end());
    }
  }
  EXPECT_EQ(seen.size(), 12);
  EXPECT_EQ(*seen.rbegin(), 11);
}

TEST(ExampleOrderTest, WithoutShuffleBatchesSpanEpochs) {
  const ExampleOrder order = Create(5, 3, 1, /*epochs=*/0, /*shuffle=*/false).value();
  EXPECT_THAT(order.Indices(1, 0).value(), ElementsAre(3, 4, 0));
}

TEST(ExampleOrderTest, EndsAfterTheLastEpoch) {
  const ExampleOrder order = Create(6, 3, 1, /*epochs=*/2).value();
  EXPECT_TRUE(order.Indices(3, 0).ok());
  EXPECT_TRUE(absl::IsOutOfRange(order.Indices(4, 0).status()));
}

TEST(ExampleOrderTest, RefusesNumbersOutOfRange) {
  EXPECT_THAT(std::string(Create(0, 3, 1).status().message()), HasSubstr("has 0 examples"));
  EXPECT_THAT(std::string(Create(6, 0, 1).status().message()), HasSubstr("input.batch_size is 0"));
  EXPECT_THAT(std::string(Create(6, 3, 0).status().message()), HasSubstr("replicas_to_aggregate is 0"));
  EXPECT_THAT(std::string(Create(6, 3, 1, -1).status().message()), HasSubstr("-1 epochs"));
  const ExampleOrder order = Create(6, 3, 2).value();
  for (const int64_t step : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(order.Indices(step, 0).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(order.Indices(0, 2).status()));
}

}  // namespace
}  // namespace lockstep
