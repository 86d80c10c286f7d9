#include "lockstep/train/accumulator/sparse_conditional_accumulator.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Training = config::v1::TrainingConfig;

constexpr int64_t kUnknown = PartialShape::kUnknown;

// Returns a gradient whose rows have two elements.
IndexedSlices Rows(std::vector<int64_t> indices, std::vector<float> values) {
  const int64_t rows = static_cast<int64_t>(indices.size());
  IndexedSlices slices;
  slices.indices = Tensor::FromValues<int64_t>({rows}, indices);
  slices.values = Tensor::FromValues<float>({rows, 2}, values);
  return slices;
}

// Returns a gradient of ones with the given rows and value shape.
IndexedSlices Ones(std::vector<int64_t> indices, Shape values) {
  IndexedSlices slices;
  slices.indices = Tensor::FromValues<int64_t>({static_cast<int64_t>(indices.size())}, indices);
  slices.values = Tensor(v1::DT_FLOAT, std::move(values));
  for (float& value : slices.values.flat<float>()) value = 1;
  return slices;
}

std::unique_ptr<SparseConditionalAccumulator> Make(PartialShape shape = {},
                                                   Training::Reduction reduction = Training::MEAN) {
  AccumulatorOptions options;
  options.shape = shape;
  options.reduction = reduction;
  return SparseConditionalAccumulator::Create(options).value();
}

void ExpectRows(const absl::StatusOr<IndexedSlices>& slices, const std::vector<int64_t>& indices,
                const std::vector<float>& values) {
  ASSERT_TRUE(slices.ok()) << slices.status();
  EXPECT_EQ(slices->indices.flat<int64_t>(), absl::MakeConstSpan(indices));
  EXPECT_EQ(slices->values.flat<float>(), absl::MakeConstSpan(values));
}

// Expects ApplyGrad to return InvalidArgument with this text and change nothing.
void ExpectRefused(SparseConditionalAccumulator* accumulator, const IndexedSlices& gradient, const std::string& text) {
  const int64_t count = accumulator->NumAccumulated();
  const absl::Status status = accumulator->ApplyGrad(gradient, /*local_step=*/100);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  EXPECT_EQ(accumulator->NumAccumulated(), count);
}

TEST(SparseConditionalAccumulatorTest, InvalidOptionsAreNamed) {
  AccumulatorOptions options;
  options.dtype = v1::DT_INT64;
  const absl::Status status = SparseConditionalAccumulator::Create(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("int64"));
}

// SPA-01, SPA-03.
TEST(SparseConditionalAccumulatorTest, TakesTheMeanOfEachRow) {
  const auto accumulator = SparseConditionalAccumulator::Create(AccumulatorOptions()).value();
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 1}, {1, 0, 0, 2})).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 2}, {0, 1, 3, 0})).ok());
  const absl::StatusOr<IndexedSlices> first = accumulator->TakeGrad(1);
  ExpectRows(first, {0, 1, 2}, {.5f, .5f, 0, 2, 3, 0});
  EXPECT_THAT(first->dense_shape, ElementsAre(-1, 2));
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 1}, {10, 0, 0, 20}), 1).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 2}, {0, 10, 30, 0}), 1).ok());
  ExpectRows(accumulator->TakeGrad(1), {0, 1, 2}, {5, 5, 0, 20, 30, 0});
}

// SPA-02.
TEST(SparseConditionalAccumulatorTest, TakesTheSumOfEachRow) {
  AccumulatorOptions options;
  options.reduction = Training::SUM;
  const auto accumulator = SparseConditionalAccumulator::Create(options).value();
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 1}, {1, 0, 0, 2})).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({0, 2}, {0, 1, 3, 0})).ok());
  ExpectRows(accumulator->TakeGrad(1), {0, 1, 2}, {1, 1, 0, 2, 3, 0});
}

// SPA-05.
TEST(SparseConditionalAccumulatorTest, ThreadsApplyTogether) {
  for (const auto& [reduction, expected] : {std::pair{Training::MEAN, 55.0f}, std::pair{Training::SUM, 550.0f}}) {
    const auto accumulator = Make({2, 2}, reduction);
    std::vector<std::thread> threads;
    for (int i = 1; i <= 10; ++i) {
      threads.emplace_back([&, x = 10.0f * static_cast<float>(i)] {
        EXPECT_TRUE(accumulator->ApplyGrad(Rows({0, 1}, {x, 0, 0, x})).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectRows(accumulator->TakeGrad(1), {0, 1}, {expected, 0, 0, expected});
  }
}

// SPA-06, SPA-08.
TEST(SparseConditionalAccumulatorTest, IndicesAndValuesMustFit) {
  const auto accumulator = Make();
  IndexedSlices gradient = Rows({0, 1}, {1, 2, 3, 4});
  gradient.indices = Tensor::FromValues<int64_t>({2, 2}, {0, 1, 1, 0});
  ExpectRefused(accumulator.get(), gradient, "indices should be vector");
  gradient.indices = Tensor::FromValues<int32_t>({2}, {0, 1});
  ExpectRefused(accumulator.get(), gradient, "indices are int32");
  gradient.indices = Tensor::FromValues<int64_t>({2}, {0, 1});
  gradient.values = Tensor::FromValues<float>({1, 2}, {1, 2});
  ExpectRefused(accumulator.get(), gradient, "Expected 2 non-empty input values, got 1");
  gradient.values = Tensor::FromValues<float>({}, {1});
  ExpectRefused(accumulator.get(), gradient, "0-dimensional");
  gradient.values = Tensor::FromValues<double>({2, 1}, {1, 2});
  ExpectRefused(accumulator.get(), gradient, "elements of float64");
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
}

// SPA-09.
TEST(SparseConditionalAccumulatorTest, RowsAreBelowTheFirstDimension) {
  const auto accumulator = Make({2, 2, kUnknown});
  ExpectRefused(accumulator.get(), Ones({3}, {1, 2, 1}),
                "index of slice 0 exceeded limits of shape; index is 3 exceeded 2");
  ExpectRefused(accumulator.get(), Ones({0, -1}, {2, 2, 1}), "index of slice 1 is negative; index is -1");
  EXPECT_TRUE(accumulator->ApplyGrad(Ones({1}, {1, 2, 1})).ok());
}

TEST(SparseConditionalAccumulatorTest, ValuesHaveTheDeclaredDimensions) {
  const auto accumulator = Make({2, 2, kUnknown});
  ExpectRefused(accumulator.get(), Ones({0}, {1, 2}), "expected values rank at least 3, got 2");
  ExpectRefused(accumulator.get(), Ones({0}, {1, 3, 1}), "expected values dim 1 to be 2, got 3");
  IndexedSlices gradient = Ones({0}, {1, 2, 5});
  gradient.dense_shape = {2, 2};
  ExpectRefused(accumulator.get(), gradient, "expected shape rank at least 3, got 2");
  gradient.dense_shape = {4, 2, 5};
  ExpectRefused(accumulator.get(), gradient, "expected shape dim 0 to be 2, got 4");
  gradient.dense_shape = {2, 2, 7};
  EXPECT_TRUE(accumulator->ApplyGrad(gradient).ok());
}

// SPA-11.
TEST(SparseConditionalAccumulatorTest, TheFirstGradientFixesTheDimensions) {
  const auto accumulator = Make({2, 2, kUnknown});
  ASSERT_TRUE(accumulator->ApplyGrad(Ones({0}, {1, 2, 2, 2})).ok());
  ExpectRefused(accumulator.get(), Ones({0}, {1, 2, 2, 3}), "expected values dim 3 to be 2, got 3");
  ExpectRefused(accumulator.get(), Ones({0}, {1, 2, 2}), "expected values rank 4, got 3");
  ASSERT_TRUE(accumulator->TakeGrad(1).ok());
  EXPECT_TRUE(accumulator->ApplyGrad(Ones({0}, {1, 2, 2, 3}), /*local_step=*/1).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 1);
}

// SPA-12.
TEST(SparseConditionalAccumulatorTest, TheDenseShapeBeginsWithTheDeclaredRows) {
  const auto accumulator = Make({2, kUnknown});
  ASSERT_TRUE(accumulator->ApplyGrad(Ones({0}, {1, 2, 2, 2})).ok());
  const IndexedSlices slices = accumulator->TakeGrad(1).value();
  EXPECT_THAT(slices.dense_shape, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(slices.values.shape(), (Shape{1, 2, 2, 2}));
}

// SPA-16.
TEST(SparseConditionalAccumulatorTest, StaleGradientsAreDropped) {
  const auto accumulator = Make();
  accumulator->SetGlobalStep(1);
  EXPECT_TRUE(accumulator->ApplyGrad(Rows({0}, {1, 2}), /*local_step=*/0).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
}

// SPA-17.
TEST(SparseConditionalAccumulatorTest, AGradientWithoutRowsCounts) {
  const auto accumulator = Make();
  std::thread taker([&] { ExpectRows(accumulator->TakeGrad(2), {2}, {6, 0}); });
  while (accumulator->NumWaiting() != 1) std::this_thread::yield();
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({}, {})).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({2}, {6, 0})).ok());
  taker.join();
  ASSERT_TRUE(accumulator->ApplyGrad(Rows({}, {}), /*local_step=*/1).ok());
  ExpectRows(accumulator->TakeGrad(1), {}, {});
}

TEST(SparseConditionalAccumulatorTest, RowsMayHaveAnyOrderAndRepeat) {
  for (const auto& [reduction, divisor] : {std::pair{Training::MEAN, 2.0f}, std::pair{Training::SUM, 1.0f}}) {
    const auto accumulator = Make({}, reduction);
    ASSERT_TRUE(accumulator->ApplyGrad(Rows({5, 0, 5}, {1, 2, 3, 4, 5, 6})).ok());
    ASSERT_TRUE(accumulator->ApplyGrad(Rows({7, 5, 7}, {1, 1, 4, 2, 1, 1})).ok());
    ExpectRows(accumulator->TakeGrad(2), {0, 5, 7}, {3, 4, 10 / divisor, 10 / divisor, 2, 2});
  }
}

}  // namespace
}  // namespace lockstep::train
