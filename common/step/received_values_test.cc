#include "lockstep/common/step/received_values.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// "a" [2] and "b" [1].
ParameterLayout TestLayout() {
  v1::ModelSpec model;
  for (const int elements : {2, 1}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(elements == 2 ? "a" : "b");
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(elements);
    variable->set_trainable(true);
  }
  return ParameterLayout::Create(model).value();
}

class ReceivedValuesTest : public ::testing::Test {
 protected:
  // All elements of a version are its step.
  void Receive(int64_t step, int64_t variable) {
    const std::vector<float> content(variable == 0 ? 2 : 1, static_cast<float>(step));
    StepPiece piece;
    piece.variable = variable;
    piece.content = FloatChunks(content.data(), static_cast<int64_t>(content.size()));
    const absl::Status status = values_.Receive(step, piece);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ReceiveAll(int64_t step) {
    Receive(step, 1);
    Receive(step, 0);
  }
  // The version of `step` is held, and whole.
  void ExpectTaken(int64_t step) {
    const auto taken = values_.Take(step);
    ASSERT_TRUE(taken.ok()) << taken.status();
    for (const float value : {(**taken)[0][0], (**taken)[0][1], (**taken)[1][0]}) EXPECT_EQ(value, step);
  }

  const ParameterLayout layout_ = TestLayout();
  ReceivedValues values_{&layout_, v1::DT_FLOAT};
};

TEST_F(ReceivedValuesTest, AVersionIsTakenWhenItIsComplete) {
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(0).status()));
  Receive(0, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(0).status()));
  Receive(0, 1);
  ExpectTaken(0);
  EXPECT_TRUE(absl::IsInvalidArgument(values_.Take(1).status()));
}

TEST_F(ReceivedValuesTest, TheVersionThatIsComputedWithStaysWhileTheNextComesIn) {
  ReceiveAll(7);
  const auto taken = values_.Take(7);
  ASSERT_TRUE(taken.ok());
  ReceiveAll(8);
  EXPECT_EQ((**taken)[0][1], 7);
  Receive(9, 0);
  EXPECT_EQ((**taken)[0][1], 7) << "even if the chief sends more than it may";
  EXPECT_EQ((**taken)[1][0], 7);
}

// Whatever a worker was sent while it waited, it can take a token of the newest complete version.
TEST_F(ReceivedValuesTest, AWaitingWorkerKeepsTheNewestCompleteVersion) {
  ReceiveAll(3);
  ExpectTaken(3);
  values_.Release();
  ReceiveAll(4);
  for (int64_t step = 4; step < 9; ++step) {
    Receive(step + 1, 0);
    ExpectTaken(step);
    values_.Release();
    Receive(step + 1, 1);
    ExpectTaken(step);
    values_.Release();
  }
  ExpectTaken(9);
}

TEST_F(ReceivedValuesTest, APartOfAVersionNeverTakesTheCompleteOnesPlace) {
  ReceiveAll(3);
  for (int64_t step = 4; step < 9; ++step) Receive(step, 0);
  ExpectTaken(3);
}

}  // namespace
}  // namespace lockstep
