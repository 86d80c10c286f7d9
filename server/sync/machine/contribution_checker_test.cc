#include "lockstep/server/sync/machine/contribution_checker.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSegment = ParameterLayout::kSegmentElements;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Variables: 0 "w" [3], 1 "mean" [2] (not trained, one update op), 2 "big" [one segment and 4 elements].
ParameterLayout Layout() { return ParameterLayout::Create(FrameModel()).value(); }

v1::SlotReport Report(int64_t slot) {
  v1::SlotReport report;
  report.set_slot(slot);
  report.set_loss(1);
  report.add_update(std::string(2 * sizeof(float), '\0'));
  return report;
}

// Returns differences of `value` for the first `count` elements.
std::string Differences(uint16_t count, float value) {
  std::string bytes;
  for (uint16_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&i), sizeof(i));
  for (uint16_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

class ContributionCheckerTest : public ::testing::Test {
 protected:
  static constexpr int64_t kStep = 7;

  ContributionCheckerTest() {
    checker_.Begin(kStep, block_);
    sparse_.Begin(kStep, block_);
  }

  StepFrame Frame() const {
    StepFrame frame;
    frame.step = kStep;
    frame.block = block_;
    return frame;
  }
  absl::Status Report(const std::vector<v1::SlotReport>& reports, bool wanted = true) {
    StepFrame frame = Frame();
    frame.reports = reports;
    return checker_.CheckFrame(frame, wanted);
  }
  void ReportAll(ContributionChecker* checker) {
    StepFrame frame = Frame();
    frame.reports = {lockstep::Report(2), lockstep::Report(3)};
    ASSERT_TRUE(checker->CheckFrame(frame, /*wanted=*/true).ok());
  }
  StepPiece Piece(int64_t variable, int64_t offset, int64_t elements) const {
    StepPiece piece;
    piece.variable = variable;
    piece.offset = offset;
    piece.content = FloatChunks(data_.data(), elements);
    return piece;
  }
  absl::Status Push(ContributionChecker* checker, const StepPiece& piece, bool wanted = true) const {
    StepFrame frame = Frame();
    frame.gradients.push_back(piece);
    return checker->CheckFrame(frame, wanted);
  }
  static void ExpectInvalid(const absl::Status& status, const std::string& text) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const SlotBlock block_{2, 2};
  const ParameterLayout layout_ = Layout();
  const std::vector<float> data_ = std::vector<float>(kSegment + 4);
  ContributionChecker checker_{&layout_, {}};
  ContributionChecker sparse_{&layout_, {v1::DT_FLOAT, /*sparse=*/true}};
};

TEST_F(ContributionCheckerTest, IsWholeWhenEveryTrainableSegmentCame) {
  EXPECT_TRUE(Report({lockstep::Report(2)}).ok());
  EXPECT_FALSE(checker_.reported());
  EXPECT_TRUE(Report({lockstep::Report(3)}).ok());
  EXPECT_TRUE(checker_.reported());
  EXPECT_TRUE(Push(&checker_, Piece(2, kSegment, 4)).ok());
  EXPECT_TRUE(Push(&checker_, Piece(0, 0, 3)).ok());
  ExpectInvalid(checker_.CheckWhole(), "the contribution to slots [2,4) of step 7 has 2 of 3 pieces of 65536 elements");
  EXPECT_TRUE(Push(&checker_, Piece(2, 0, kSegment)).ok());
  EXPECT_TRUE(checker_.CheckWhole().ok());
}

TEST_F(ContributionCheckerTest, OnePieceMayHoldSeveralSegments) {
  ReportAll(&checker_);
  EXPECT_TRUE(Push(&checker_, Piece(2, 0, kSegment + 4)).ok());
  EXPECT_TRUE(Push(&checker_, Piece(0, 0, 3)).ok());
  EXPECT_TRUE(checker_.CheckWhole().ok());
}

TEST_F(ContributionCheckerTest, SparsePiecesComeOnceForEachSlot) {
  ReportAll(&sparse_);
  const std::string one = Differences(1, 1);
  for (const int64_t slot : {3, 2}) {
    for (const auto& place : {std::make_pair(0, int64_t{0}), {2, 0}, {2, kSegment}}) {
      EXPECT_FALSE(sparse_.CheckWhole().ok());
      const StepPiece piece = SparsePiece(slot, place.first, place.second, one);
      EXPECT_TRUE(Push(&sparse_, piece).ok());
      ExpectInvalid(Push(&sparse_, piece), "was sent twice");
    }
  }
  EXPECT_TRUE(sparse_.CheckWhole().ok());
}

TEST_F(ContributionCheckerTest, TakesDifferencesThatLieInTwoRuns) {
  ReportAll(&sparse_);
  const std::string three = Differences(3, 7), left = three.substr(0, 5), right = three.substr(5);
  StepPiece piece = SparsePiece(2, 0, 0, left);
  piece.content.Append(right);
  EXPECT_TRUE(Push(&sparse_, piece).ok());
}

TEST_F(ContributionCheckerTest, RefusesASegmentThatComesTwice) {
  ReportAll(&checker_);
  EXPECT_TRUE(Push(&checker_, Piece(2, 0, kSegment + 4)).ok());
  ExpectInvalid(Push(&checker_, Piece(2, kSegment, 4)), "the gradient of big from element 65536 was sent twice");
}

TEST_F(ContributionCheckerTest, RefusesAnotherStepOrBlockInside) {
  EXPECT_TRUE(checker_.CheckFrame(Frame(), true).ok());
  StepFrame other = Frame();
  other.block = {0, 2};
  ExpectInvalid(checker_.CheckFrame(other, true),
                "a frame for slots [0,2) of step 7 inside a contribution to slots [2,4) of step 7");
  other = Frame();
  other.step = 8;
  ExpectInvalid(checker_.CheckFrame(other, true), "a frame for slots [2,4) of step 8 inside");
}

TEST_F(ContributionCheckerTest, WantsTheReportsOnceAndFirst) {
  ExpectInvalid(Push(&checker_, Piece(0, 0, 3)), "gradients came before the reports of their slots");
  EXPECT_TRUE(Report({lockstep::Report(2)}).ok());
  ExpectInvalid(Push(&checker_, Piece(0, 0, 3)), "after 1 reports in a contribution to slots [2,4), expected 2");
  EXPECT_TRUE(Report({lockstep::Report(3)}).ok());
  EXPECT_TRUE(Push(&checker_, Piece(0, 0, 3)).ok());
  EXPECT_EQ(checker_.reports().size(), 2u);
  ExpectInvalid(Report({lockstep::Report(3)}), "reports were sent twice");
}

TEST_F(ContributionCheckerTest, BeginForgetsThePreviousContribution) {
  ReportAll(&checker_);
  EXPECT_TRUE(Push(&checker_, Piece(2, 0, kSegment + 4)).ok());
  checker_.Begin(8, {0, 1});
  EXPECT_FALSE(checker_.reported());
  EXPECT_TRUE(checker_.reports().empty());
  StepFrame frame;
  frame.step = 8;
  frame.block = {0, 1};
  frame.reports = {lockstep::Report(0)};
  frame.gradients = {Piece(2, 0, kSegment + 4)};
  EXPECT_TRUE(checker_.CheckFrame(frame, true).ok());
  EXPECT_FALSE(checker_.CheckWhole().ok());
}

TEST_F(ContributionCheckerTest, ChecksOnlyTheOrderOfAFinishedStep) {
  ExpectInvalid(Push(&checker_, Piece(0, 0, 3), /*wanted=*/false), "gradients came before the reports");
  EXPECT_TRUE(Report({lockstep::Report(2), lockstep::Report(3)}, /*wanted=*/false).ok());
  EXPECT_TRUE(checker_.reports().empty());
  EXPECT_TRUE(Push(&checker_, Piece(0, 1, 1), /*wanted=*/false).ok()) << "nobody will add it";
  ExpectInvalid(Report({lockstep::Report(2)}, /*wanted=*/false), "reports were sent twice");
}

TEST(ContributionCheckerTypesTest, IntegerUpdatesHaveTheirSize) {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
    variables { name: "seen" dtype: DT_INT64 shape: 2 }
    variables { name: "flags" dtype: DT_BOOL shape: 3 }
    update_ops { variable: "seen" kind: ASSIGN_ADD }
    update_ops { variable: "flags" kind: ASSIGN }
  )",
                                                            &model));
  const ParameterLayout layout = ParameterLayout::Create(model).value();
  const auto check = [&](size_t seen, const std::string& flags) {
    ContributionChecker checker(&layout, {});
    StepFrame frame;
    frame.block = {0, 1};
    v1::SlotReport& report = frame.reports.emplace_back();
    report.add_update(std::string(seen, '\0'));
    report.add_update(flags);
    checker.Begin(0, frame.block);
    return std::string(checker.CheckFrame(frame, /*wanted=*/true).message());
  };
  EXPECT_EQ(check(16, std::string("\0\1\1", 3)), "");
  EXPECT_THAT(check(8, std::string(3, '\1')),
              HasSubstr("the update of seen for slot 0 has 8 bytes, expected 16 of int64"));
  EXPECT_THAT(check(16, std::string("\0\1\2", 3)),
              HasSubstr("the update of flags for slot 0 has a bool that is neither"));
}

TEST_F(ContributionCheckerTest, RefusesWrongReports) {
  v1::SlotReport no_update = lockstep::Report(3);
  no_update.clear_update();
  v1::SlotReport short_update = lockstep::Report(3);
  short_update.mutable_update(0)->resize(7);
  v1::SlotReport light = lockstep::Report(3), endless = lockstep::Report(3);
  light.set_weight(-1);
  endless.set_weight(std::numeric_limits<float>::infinity());
  const v1::SlotReport right = lockstep::Report(2);
  const std::vector<std::pair<std::vector<v1::SlotReport>, std::string>> cases = {
      {{right, right}, "two reports for slot 2"},
      {{right, lockstep::Report(4)}, "a report for slot 4 in a contribution to slots [2,4)"},
      {{right, lockstep::Report(-1)}, "a report for slot -1"},
      {{right, lockstep::Report(kMax)}, "a report for slot 9223372036854775807"},
      {{right, no_update}, "the report of slot 3 has 0 update values; the model has 1"},
      {{right, short_update}, "the update of mean for slot 3 has 7 bytes, expected 8"},
      {{right, lockstep::Report(3), right}, "more than 2 reports in a contribution"},
      {{right, light}, "the report of slot 3 has the weight -1, must be a finite number, 0 or more"},
      {{right, endless}, "the report of slot 3 has the weight inf"},
  };
  for (const auto& test : cases) {
    checker_.Begin(kStep, block_);
    ExpectInvalid(Report(test.first), test.second);
  }
}

TEST_F(ContributionCheckerTest, RefusesWrongPieces) {
  StepPiece odd;
  odd.content.Append(absl::string_view(reinterpret_cast<const char*>(data_.data()), 11));
  const std::vector<std::pair<StepPiece, std::string>> cases = {
      {Piece(3, 0, 3), "variable number 3; the model has 3 variables"},
      {Piece(-1, 0, 3), "variable number -1"},
      {Piece(kMax, 0, 3), "variable number 9223372036854775807"},
      {Piece(1, 0, 2), "the gradient of mean at element 0 with 8 bytes is for a variable that is not trainable"},
      {odd, "the gradient of w at element 0 with 11 bytes has no whole number of float32 elements"},
      {Piece(0, 0, 0), "has no whole number"},
      {Piece(0, 0, 4), "does not lie within its 3 elements"},
      {Piece(0, 3, 1), "does not lie within its 3 elements"},
      {Piece(0, kMax, 1), "does not lie within its 3 elements"},
      {Piece(0, kMax - 1, 3), "does not lie within its 3 elements"},
      {Piece(0, -1, 1), "does not lie within its 3 elements"},
      {Piece(2, kSegment, kSegment), "does not lie within its 65540 elements"},
      {Piece(0, 0, 2), "is not made of whole pieces of 65536 elements"},
      {Piece(2, 4, kSegment), "is not made of whole pieces"},
      {Piece(2, 0, kSegment + 1), "is not made of whole pieces"},
      {Piece(2, kSegment, 3), "is not made of whole pieces"},
      {SparsePiece(2, 0, 0, ""), "a gradient is sent sparse; the run's travel whole"},
  };
  ReportAll(&checker_);
  for (const auto& test : cases) ExpectInvalid(Push(&checker_, test.first), test.second);
  EXPECT_TRUE(Push(&checker_, Piece(2, 0, kSegment)).ok());
  EXPECT_TRUE(Push(&checker_, Piece(2, kSegment, 4)).ok());
}

TEST_F(ContributionCheckerTest, RefusesMalformedSparsePiecesByName) {
  const std::string one = Differences(1, 1), four = Differences(4, 1), odd = one.substr(1);
  const std::pair<StepPiece, std::string> cases[] = {
      {SparsePiece(2, 7, 0, one), "a gradient for variable number 7; the model has 3 variables"},
      {SparsePiece(2, 1, 0, one),
       "the gradient of mean for slot 2 at element 0 is for a variable that is not trainable"},
      {SparsePiece(4, 0, 0, one), "the gradient of w for slot 4 at element 0 is in a contribution to slots [2,4)"},
      {SparsePiece(2, 2, 5, one), "is not a segment of 65536 of its 65540 elements"},
      {SparsePiece(2, 2, 2 * kSegment, one), "is not a segment of"},
      {SparsePiece(2, 2, -kSegment, one), "is not a segment of"},
      {SparsePiece(2, 0, 0, four), "is malformed: index 3 is not below the 3 elements"},
      {SparsePiece(2, 0, 0, odd), "is malformed: 5 bytes are not a whole number"},
      {Piece(0, 0, 3), "a gradient is sent whole; the run's travel sparse"}};
  ReportAll(&sparse_);
  for (const auto& test : cases) ExpectInvalid(Push(&sparse_, test.first), test.second);
}

TEST_F(ContributionCheckerTest, NamesBothTypesOfAGradientThatTravelsAsAnother) {
  ReportAll(&checker_);
  const uint16_t numbers[3] = {};
  StepPiece piece = Piece(0, 0, 3);
  piece.content = FloatChunks(v1::DT_HALF, numbers, 3);
  ExpectInvalid(Push(&checker_, piece), "the gradient of w is sent as float16; the run's gradients travel as float32");
}

TEST_F(ContributionCheckerTest, AFrameWithoutABlockHoldsNothing) {
  StepFrame frame;
  EXPECT_TRUE(CheckEmpty(frame).ok());
  frame.reports.resize(1);
  ExpectInvalid(CheckEmpty(frame), "gradients or reports without a block of slots");
  frame.reports.clear();
  frame.gradients.resize(1);
  EXPECT_FALSE(CheckEmpty(frame).ok());
}

TEST_F(ContributionCheckerTest, AFrameMayHoldWhatTheModelHas) {
  const StepFrameLimits limits = FrameLimitsOf(layout_, 8, /*sparse=*/false);
  EXPECT_EQ(limits.reports, 8);
  EXPECT_EQ(limits.pieces, 4);
  EXPECT_EQ(limits.bytes, (64 << 10) + 8 * MaxSummaryBytes(layout_) + 8 * (400 + 8) + 3 * 16 * 8);
  EXPECT_EQ(FrameLimitsOf(layout_, 8, /*sparse=*/true).pieces, 32);
}

}  // namespace
}  // namespace lockstep
