#include "lockstep/train/accumulator/conditional_accumulator.h"

#include <string>
#include <thread>
#include <vector>

#include "Eigen/Core"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Training = config::v1::TrainingConfig;

Tensor Scalar(float value) { return Tensor::FromValues<float>({}, {value}); }

std::unique_ptr<ConditionalAccumulator> Make(PartialShape shape = {}, Training::Reduction reduction = Training::MEAN) {
  AccumulatorOptions options;
  options.shape = shape;
  options.reduction = reduction;
  return ConditionalAccumulator::Create(options).value();
}

// Takes gradients from a float32 accumulator and returns the elements.
std::vector<float> Take(ConditionalAccumulator* accumulator, int64_t num_required) {
  const absl::StatusOr<Tensor> taken = accumulator->TakeGrad(num_required);
  EXPECT_TRUE(taken.ok()) << taken.status();
  if (!taken.ok()) return {};
  return std::vector<float>(taken->flat<float>().begin(), taken->flat<float>().end());
}

void AwaitTakes(const ConditionalAccumulator& accumulator, int64_t count) {
  while (accumulator.NumWaiting() != count) std::this_thread::yield();
}

// ACC-02.
TEST(ConditionalAccumulatorTest, InvalidOptionsAreNamed) {
  AccumulatorOptions options;
  options.reduction = static_cast<Training::Reduction>(7);
  absl::Status status = ConditionalAccumulator::Create(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reduction of an accumulator is 7"));
  options.reduction = Training::SUM;
  options.dtype = v1::DT_INT32;
  status = ConditionalAccumulator::Create(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("dtype of an accumulator is int32"));
}

// ACC-03, ACC-04.
TEST(ConditionalAccumulatorTest, TakesTheMeanAndBeginsAStep) {
  const auto accumulator = ConditionalAccumulator::Create(AccumulatorOptions()).value();
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(10)).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(20)).ok());
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(15.0f));
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
  // The accumulator's step is 1, so a gradient of step 0 is dropped, even if its shape is wrong.
  ASSERT_TRUE(accumulator->ApplyGrad(Tensor::FromValues<float>({2}, {1, 2}), /*local_step=*/0).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(10), 1).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(20), 1).ok());
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(15.0f));
}

// ACC-05.
TEST(ConditionalAccumulatorTest, TakesTheSum) {
  AccumulatorOptions options;
  options.reduction = Training::SUM;
  const auto accumulator = ConditionalAccumulator::Create(options).value();
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(10)).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(20)).ok());
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(30.0f));
}

// ACC-07.
template <typename T>
T MeanOfTen(v1::DataType dtype) {
  AccumulatorOptions options;
  options.dtype = dtype;
  const auto accumulator = ConditionalAccumulator::Create(options).value();
  for (int i = 0; i < 10; ++i) {
    Tensor gradient(dtype, {});
    gradient.flat<T>()[0] = static_cast<T>(static_cast<float>(i));
    EXPECT_TRUE(accumulator->ApplyGrad(gradient).ok());
  }
  const Tensor mean = accumulator->TakeGrad(1).value();
  EXPECT_EQ(mean.dtype(), dtype);
  return mean.flat<T>()[0];
}

TEST(ConditionalAccumulatorTest, AddsEachTypeOfGradient) {
  EXPECT_EQ(MeanOfTen<Eigen::half>(v1::DT_HALF), Eigen::half(4.5f));
  EXPECT_EQ(MeanOfTen<float>(v1::DT_FLOAT), 4.5f);
  EXPECT_EQ(MeanOfTen<double>(v1::DT_DOUBLE), 4.5);
  const absl::Status status = Make()->ApplyGrad(Tensor::FromValues<double>({}, {1.0}));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("elements of float64, and the accumulator of float32"));
}

// ACC-09.
TEST(ConditionalAccumulatorTest, TakesAllGradientsThatAreThere) {
  const auto accumulator = Make();
  for (const float value : {1.0f, 2.0f, 6.0f}) ASSERT_TRUE(accumulator->ApplyGrad(Scalar(value)).ok());
  EXPECT_THAT(Take(accumulator.get(), 2), ElementsAre(3.0f));
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
}

// ACC-10.
TEST(ConditionalAccumulatorTest, ATakeNeedsAPositiveNumber) {
  for (const int64_t number : {-1, 0}) {
    const absl::Status status = Make()->TakeGrad(number).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("num_required is ", number)));
  }
}

// ACC-12.
TEST(ConditionalAccumulatorTest, ATakeWaitsForItsGradients) {
  const auto accumulator = Make();
  std::thread taker([&] { EXPECT_THAT(Take(accumulator.get(), 3), ElementsAre(20.0f)); });
  AwaitTakes(*accumulator, 1);
  for (const float value : {10.0f, 20.0f, 30.0f}) {
    EXPECT_EQ(accumulator->NumWaiting(), 1);
    ASSERT_TRUE(accumulator->ApplyGrad(Scalar(value)).ok());
  }
  taker.join();
}

// ACC-13.
TEST(ConditionalAccumulatorTest, OneGradientServesOneTake) {
  const auto accumulator = Make();
  std::vector<float> taken(10);
  std::vector<std::thread> takers;
  for (float& value : taken) {
    takers.emplace_back([&] { value = Take(accumulator.get(), 1)[0]; });
  }
  AwaitTakes(*accumulator, 10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(accumulator->ApplyGrad(Scalar(static_cast<float>(i)), i).ok());
  for (std::thread& taker : takers) taker.join();
  EXPECT_THAT(taken, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(ConditionalAccumulatorTest, TakesAreServedInTheirOrder) {
  const auto accumulator = Make();
  std::thread first([&] { EXPECT_THAT(Take(accumulator.get(), 2), ElementsAre(1.5f)); });
  AwaitTakes(*accumulator, 1);
  std::thread second([&] { EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(3.0f)); });
  AwaitTakes(*accumulator, 2);
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1)).ok());
  EXPECT_EQ(accumulator->NumWaiting(), 2) << "the second take waits for the first one";
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(2)).ok());
  first.join();
  EXPECT_EQ(accumulator->NumWaiting(), 1);
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(3), /*local_step=*/1).ok());
  second.join();
}

// ACC-16.
TEST(ConditionalAccumulatorTest, ClosingCancelsTakes) {
  const auto accumulator = Make();
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1)).ok());
  absl::Status waiting;
  std::thread taker([&] { waiting = accumulator->TakeGrad(2).status(); });
  AwaitTakes(*accumulator, 1);
  accumulator->Close();
  taker.join();
  const absl::Status later = accumulator->TakeGrad(1).status();
  for (const absl::Status& status : {waiting, later, accumulator->ApplyGrad(Scalar(1))}) {
    EXPECT_TRUE(absl::IsCancelled(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("was cancelled"));
  }
  EXPECT_EQ(accumulator->NumWaiting(), 0);
}

// ACC-17.
TEST(ConditionalAccumulatorTest, GradientsHaveTheDeclaredShape) {
  const auto accumulator = Make({3, 2});
  for (const Shape& shape : {Shape{2, 2}, Shape{3, 1}, Shape{3, 2, 1}}) {
    const absl::Status status = accumulator->ApplyGrad(Tensor(v1::DT_FLOAT, shape));
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected [3,2], got " + shape.ToString()));
  }
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
}

// ACC-18.
TEST(ConditionalAccumulatorTest, TheFirstGradientFixesTheShape) {
  const auto accumulator = Make({PartialShape::kUnknown, 2});
  const Tensor three = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor two = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(accumulator->ApplyGrad(three).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(accumulator->ApplyGrad(two)));
  EXPECT_EQ(accumulator->NumAccumulated(), 1);
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(1, 2, 3, 4, 5, 6)) << "the other gradient left no trace";
  ASSERT_TRUE(accumulator->ApplyGrad(two, 1).ok()) << "after a take, another shape may follow";
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(1, 2, 3, 4));
}

// ACC-20.
TEST(ConditionalAccumulatorTest, TakesTheMeanOfMatrices) {
  const auto accumulator = Make({3, 2});
  const Tensor a = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(accumulator->ApplyGrad(a).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Tensor::FromValues<float>({3, 2}, {10, 20, 30, 40, 50, 60})).ok());
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(5.5f, 11.0f, 16.5f, 22.0f, 27.5f, 33.0f));
  EXPECT_THAT(a.flat<float>(), ElementsAre(1, 2, 3, 4, 5, 6)) << "the caller's tensor stays as it is";
}

// ACC-22.
TEST(ConditionalAccumulatorTest, ThreadsApplyTogether) {
  const auto accumulator = Make();
  std::vector<std::thread> threads;
  for (int i = 1; i <= 10; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(accumulator->ApplyGrad(Scalar(10.0f * static_cast<float>(i))).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Take(accumulator.get(), 1), ElementsAre(55.0f));
}

// ACC-23.
TEST(ConditionalAccumulatorTest, CountsTheGradients) {
  const auto accumulator = Make();
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1)).ok());
  Take(accumulator.get(), 1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1), 1).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 4);
  Take(accumulator.get(), 2);
  EXPECT_EQ(accumulator->NumAccumulated(), 0);
}

TEST(ConditionalAccumulatorTest, TheStepMayBeSet) {
  const auto accumulator = Make();
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1)).ok());
  accumulator->SetGlobalStep(5);
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(100), /*local_step=*/4).ok());
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(3), /*local_step=*/7).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 2) << "the gradient of before stays, and one of a later step counts";
  EXPECT_THAT(Take(accumulator.get(), 2), ElementsAre(2.0f));
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1), /*local_step=*/5).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 0) << "the take raised the step to 6";
  accumulator->SetGlobalStep(2);
  ASSERT_TRUE(accumulator->ApplyGrad(Scalar(1), /*local_step=*/2).ok());
  EXPECT_EQ(accumulator->NumAccumulated(), 1);
}

}  // namespace
}  // namespace lockstep::train
