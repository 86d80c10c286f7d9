#include "lockstep/train/hooks/base/fetched_value.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(FetchedValueTest, LossAndStepAreThereWithoutAFetch) {
  RunValues values;
  values.result.loss = 0.25;
  values.result.global_step = 7;
  values.fetched["w"] = {"w", Tensor::FromValues<float>({2}, {1, 2.5})};
  EXPECT_EQ(TensorText(*FetchedValue(values, "loss")), "0.25");
  EXPECT_EQ(TensorText(*FetchedValue(values, "global_step")), "7");
  EXPECT_EQ(TensorText(*FetchedValue(values, "w")), "[1 2.5]");
  EXPECT_EQ(FetchedValue(values, "v").status(), absl::InternalError("v was not fetched"));
  EXPECT_TRUE(IsOfEveryRun("loss"));
  EXPECT_FALSE(IsOfEveryRun("w"));
}

TEST(FetchedValueTest, ALongValueIsShortened) {
  const std::vector<int64_t> many(12, 3);
  EXPECT_EQ(TensorText(Tensor::FromValues<int64_t>({3, 4}, many)), "[3 3 3 3 3 3 3 3 ... of shape [3,4]]");
  EXPECT_EQ(TensorText(Tensor::FromValues<float>({0}, {})), "[]");
  EXPECT_EQ(TensorText(Tensor::FromValues<float>({3}, {1, 2, 3}), 2), "[1 2 ... of shape [3]]");
  EXPECT_EQ(TensorText(Tensor::FromValues<float>({3}, {1, 2, 3}), 0), "[... of shape [3]]");
  EXPECT_EQ(TensorText(Tensor::FromValues<int64_t>({12}, many), -1), "[3 3 3 3 3 3 3 3 3 3 3 3]");
}

}  // namespace
}  // namespace lockstep::train
