#include "server/chief/incoming_contribution.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSegment = ParameterLayout::kSegmentElements;

// "w" of two segments, the second of 3 elements, and "mean", which is not trainable.
ParameterLayout Layout() {
  ModelSpec model;
  for (const char* name : {"w", "mean"}) {
    VariableSpec* variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(DT_FLOAT);
    variable->add_shape(kSegment + 3);
    variable->set_trainable(variable->name() == "w");
  }
  return ParameterLayout::Create(model).value();
}

class IncomingContributionTest : public ::testing::Test {
 protected:
  IncomingContributionTest() { incoming_.Begin(7, {2, 2}); }

  absl::Status AddReport(int64_t slot) {
    SlotReport report;
    report.set_slot(slot);
    return incoming_.AddReports({report}, /*keep=*/true);
  }
  absl::Status Mark(int64_t offset, int64_t elements) {
    StepPiece piece;
    piece.offset = offset;
    piece.content = FloatChunks(data_.data(), elements);
    return incoming_.MarkPiece(piece);
  }

  const ParameterLayout layout_ = Layout();
  const std::vector<float> data_ = std::vector<float>(kSegment + 3);
  IncomingContribution incoming_{&layout_};
};

TEST_F(IncomingContributionTest, IsWholeWhenEveryTrainableSegmentCame) {
  EXPECT_TRUE(incoming_.begun());
  EXPECT_TRUE(AddReport(2).ok());
  EXPECT_TRUE(AddReport(3).ok());
  EXPECT_TRUE(Mark(kSegment, 3).ok());
  const absl::Status status = incoming_.CheckWhole();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("slots [2,4) of step 7 has 1 of 2 pieces"));
  EXPECT_TRUE(Mark(0, kSegment).ok());
  EXPECT_TRUE(incoming_.CheckWhole().ok());
  incoming_.End();
  EXPECT_FALSE(incoming_.begun());
}

TEST_F(IncomingContributionTest, OnePieceMayHoldSeveralSegments) {
  EXPECT_TRUE(Mark(0, kSegment + 3).ok());
  EXPECT_TRUE(incoming_.CheckWhole().ok());
}

TEST_F(IncomingContributionTest, SparsePiecesComeOnceForEachSlot) {
  incoming_.Begin(7, {2, 2}, /*sparse=*/true);
  StepPiece piece;
  piece.sparse = true;
  for (const int64_t slot : {3, 2}) {
    for (const int64_t offset : {int64_t{0}, kSegment}) {
      EXPECT_FALSE(incoming_.CheckWhole().ok());
      piece.slot = slot;
      piece.offset = offset;
      EXPECT_TRUE(incoming_.MarkPiece(piece).ok());
      EXPECT_TRUE(absl::IsInvalidArgument(incoming_.MarkPiece(piece)));
    }
  }
  EXPECT_TRUE(incoming_.CheckWhole().ok());
}

TEST_F(IncomingContributionTest, RefusesASegmentThatComesTwice) {
  EXPECT_TRUE(Mark(0, kSegment + 3).ok());
  const absl::Status status = Mark(kSegment, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the gradient of w from element 65536 was sent twice"));
}

TEST_F(IncomingContributionTest, RefusesAnotherStepOrBlockInside) {
  EXPECT_TRUE(incoming_.CheckSame(7, {2, 2}).ok());
  EXPECT_THAT(std::string(incoming_.CheckSame(7, {0, 2}).message()),
              HasSubstr("slots [0,2) of step 7 inside a contribution to slots [2,4) of step 7"));
  EXPECT_THAT(std::string(incoming_.CheckSame(8, {2, 2}).message()), HasSubstr("slots [2,4) of step 8"));
}

TEST_F(IncomingContributionTest, WantsTheReportsOnceAndFirst) {
  EXPECT_THAT(std::string(incoming_.CheckReported().message()), HasSubstr("before the reports"));
  EXPECT_TRUE(AddReport(2).ok());
  EXPECT_THAT(std::string(incoming_.CheckReported().message()),
              HasSubstr("after 1 reports in a contribution to slots [2,4), expected 2"));
  EXPECT_TRUE(AddReport(3).ok());
  EXPECT_TRUE(incoming_.CheckReported().ok());
  EXPECT_EQ(incoming_.TakeReports().size(), 2u);
  EXPECT_THAT(std::string(AddReport(3).message()), HasSubstr("twice"));
}

TEST_F(IncomingContributionTest, BeginForgetsTheOneBefore) {
  EXPECT_TRUE(AddReport(2).ok());
  EXPECT_TRUE(AddReport(3).ok());
  EXPECT_TRUE(Mark(0, kSegment + 3).ok());
  incoming_.MarkNew();
  incoming_.End();
  incoming_.Begin(8, {0, 1});
  EXPECT_FALSE(incoming_.any_new());
  EXPECT_FALSE(incoming_.CheckReported().ok());
  EXPECT_FALSE(incoming_.CheckWhole().ok());
  EXPECT_TRUE(Mark(0, kSegment + 3).ok());
}

}  // namespace
}  // namespace lockstep
