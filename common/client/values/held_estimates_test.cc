#include "lockstep/common/client/values/held_estimates.h"

#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSlots = 6;

ParameterLayout TestLayout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
           variables { name: "mean" dtype: DT_FLOAT shape: 7 }
           variables { name: "b" dtype: DT_FLOAT shape: 3 trainable: true })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

class HeldEstimatesTest : public ::testing::Test {
 protected:
  absl::Status Receive(int64_t step, int64_t slot, int64_t variable, int64_t offset, std::vector<float> content) {
    StepPiece piece;
    piece.slot = slot;
    piece.variable = variable;
    piece.offset = offset;
    piece.content = FloatChunks(content.data(), static_cast<int64_t>(content.size()));
    return held_.Receive(step, piece);
  }
  // Receives a whole estimate whose elements are all `value`.
  void ReceiveAll(int64_t step, int64_t slot, float value) {
    EXPECT_TRUE(Receive(step, slot, 0, 0, {value, value}).ok());
    EXPECT_FALSE(held_.Holds(step, slot));
    EXPECT_TRUE(Receive(step, slot, 2, 1, {value, value}).ok());
    EXPECT_TRUE(Receive(step, slot, 2, 0, {value}).ok());
    EXPECT_TRUE(held_.Holds(step, slot));
  }
  void ExpectAll(const float* flat, float value) {
    for (const int variable : {0, 2}) {
      const auto& place = layout_.variables()[variable];
      for (int64_t i = 0; i < place.elements; ++i) EXPECT_EQ(flat[place.flat_offset + i], value);
    }
  }

  const ParameterLayout layout_ = TestLayout();
  HeldEstimates held_{&layout_, kSlots};
};

TEST_F(HeldEstimatesTest, TakesEstimatesOfATokensSlotsInOrder) {
  for (const int64_t slot : {3, 2, 5}) ReceiveAll(7, slot, static_cast<float>(slot));
  const auto taken = held_.Take(7, {2, 2});
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->size(), 2u);
  ExpectAll((*taken)[0], 2);
  ExpectAll((*taken)[1], 3);
  EXPECT_FALSE(held_.Holds(7, 5)) << "others are dropped";
}

TEST_F(HeldEstimatesTest, TakenEstimatesBelongToTheNextStep) {
  ReceiveAll(7, 2, 1);
  ASSERT_TRUE(held_.Take(7, {2, 1}).ok());
  held_.Advance();
  EXPECT_FALSE(held_.Holds(7, 2));
  const auto taken = held_.Take(8, {2, 1});
  ASSERT_TRUE(taken.ok()) << taken.status();
  ExpectAll((*taken)[0], 1);
}

TEST_F(HeldEstimatesTest, AtStep0TheyAreZeros) {
  ReceiveAll(7, 1, 4);  // memory that is used again
  const auto taken = held_.Take(0, {0, 2});
  ASSERT_TRUE(taken.ok()) << taken.status();
  for (const float* const flat : *taken) ExpectAll(flat, 0);
}

TEST_F(HeldEstimatesTest, APartOfANewerStepIsNotTheWhole) {
  ReceiveAll(7, 2, 1);
  EXPECT_TRUE(Receive(8, 2, 0, 0, {2, 2}).ok());
  EXPECT_FALSE(held_.Holds(7, 2));
  EXPECT_FALSE(held_.Holds(8, 2));
  const auto taken = held_.Take(8, {2, 1});
  EXPECT_TRUE(absl::IsInvalidArgument(taken.status()));
  EXPECT_EQ(taken.status().message(), "a token for slot 2 of step 8 without the estimate of its gradient");
}

TEST_F(HeldEstimatesTest, RefusesAnEstimateOfAnUntrainedVariable) {
  const absl::Status status = Receive(7, 2, 1, 0, {1});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "an estimate of the gradient of mean, which is not trained");
}

TEST_F(HeldEstimatesTest, CopiesHandedOverEstimates) {
  AlignedBuffer flat(static_cast<size_t>(layout_.trained_elements()) * sizeof(float));
  for (int64_t i = 0; i < layout_.trained_elements(); ++i) flat.as<float>()[i] = 9;
  held_.Copy(3, 1, flat);
  flat.as<float>()[0] = 0;
  EXPECT_TRUE(held_.Holds(3, 1));
  ExpectAll(held_.Take(3, {1, 1}).value()[0], 9);
}

TEST_F(HeldEstimatesTest, RefusesPiecesOutsideTheModel) {
  const auto expect_refused = [this](int64_t slot, int64_t variable, int64_t offset, size_t elements,
                                     const std::string& text) {
    const absl::Status status = Receive(1, slot, variable, offset, std::vector<float>(elements));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  expect_refused(6, 0, 0, 1, "an estimate for slot 6 of 6");
  expect_refused(-1, 0, 0, 1, "an estimate for slot -1 of 6");
  expect_refused(0, 3, 0, 1, "an estimate for variable number 3");
  expect_refused(0, 0, 0, 3, "an estimate of the gradient of a at element 0 with 12 bytes");
  expect_refused(0, 2, 3, 1, "at element 3 with 4 bytes");
  expect_refused(0, 2, 2, 2, "at element 2 with 8 bytes");
  expect_refused(0, 2, int64_t{1} << 62, 1, "at element 4611686018427387904");
  EXPECT_TRUE(Receive(1, 5, 2, 2, {1}).ok());
}

}  // namespace
}  // namespace lockstep
