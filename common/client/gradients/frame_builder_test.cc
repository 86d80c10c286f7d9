#include "lockstep/common/client/gradients/frame_builder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr int64_t kFloats = 100;
const float kGradient[kFloats] = {};

v1::Token TokenOf(int64_t step, int64_t first_slot, int64_t slot_count) {
  v1::Token token;
  token.set_step(step);
  token.set_first_slot(first_slot);
  token.set_slot_count(slot_count);
  return token;
}

StepPiece PieceOf(int64_t variable, int64_t elements) {
  StepPiece piece;
  piece.variable = variable;
  piece.content = FloatChunks(kGradient, elements);
  return piece;
}

std::vector<v1::SlotReport> Reports(int count, size_t update_bytes) {
  std::vector<v1::SlotReport> reports(count);
  for (int i = 0; i < count; ++i) {
    reports[i].set_slot(i);
    reports[i].add_update(std::string(update_bytes, 'u'));
  }
  return reports;
}

StepFrame FirstFrame() {
  StepFrame first;
  first.session_id = 5;
  first.generation = 3;
  return first;
}

TEST(FrameBuilderTest, OnlyTheFirstFrameIntroducesTheWorker) {
  StepFrame introduction = FirstFrame();
  introduction.startup_delay_steps = 7;
  introduction.gradient_memory.emplace();
  introduction.gradient_memory->set_bytes(64);
  FrameBuilder builder(introduction, FrameSizes());
  const StepFrame first = builder.End();
  const StepFrame second = builder.End();
  EXPECT_EQ(first.startup_delay_steps, 7);
  EXPECT_TRUE(first.gradient_memory.has_value());
  EXPECT_EQ(second.startup_delay_steps, 0);
  EXPECT_FALSE(second.gradient_memory.has_value());
  for (const StepFrame& frame : {first, second}) {
    EXPECT_EQ(frame.session_id, 5u);
    EXPECT_EQ(frame.generation, 3);
    EXPECT_TRUE(frame.end);
    EXPECT_EQ(frame.block.count, 0) << "no contribution";
  }
}

TEST(FrameBuilderTest, SmallContributionsAreOneFrame) {
  FrameSizes sizes;
  sizes.frame_bytes = 1000;
  FrameBuilder builder(FirstFrame(), sizes);
  builder.Begin(TokenOf(9, 4, 2));
  EXPECT_TRUE(builder.AddReports(Reports(2, 4)).empty());
  EXPECT_FALSE(builder.AddPiece(PieceOf(1, 10)).has_value());
  EXPECT_FALSE(builder.AddPiece(PieceOf(0, 20)).has_value());
  const StepFrame frame = builder.End();
  EXPECT_EQ(frame.step, 9);
  EXPECT_EQ(frame.block.first, 4);
  EXPECT_EQ(frame.block.count, 2);
  EXPECT_EQ(frame.reports.size(), 2u);
  ASSERT_EQ(frame.gradients.size(), 2u);
  EXPECT_EQ(frame.gradients[0].variable, 1) << "in the order of their coming";
  EXPECT_TRUE(frame.end);
  const StepFrame next = builder.End();
  EXPECT_TRUE(next.reports.empty()) << "nothing is sent twice";
  EXPECT_TRUE(next.gradients.empty());
}

TEST(FrameBuilderTest, AFullFrameLeavesBeforeTheBlockIsDone) {
  FrameSizes sizes;
  sizes.frame_bytes = 100 * sizeof(float);
  FrameBuilder builder(FirstFrame(), sizes);
  builder.Begin(TokenOf(0, 0, 1));
  EXPECT_FALSE(builder.AddPiece(PieceOf(0, 60)).has_value());
  const auto full = builder.AddPiece(PieceOf(1, 40));
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->gradients.size(), 2u);
  EXPECT_FALSE(full->end);
  EXPECT_FALSE(builder.AddPiece(PieceOf(2, 99)).has_value()) << "a new frame is empty";
  EXPECT_EQ(builder.End().gradients.size(), 1u);
}

TEST(FrameBuilderTest, CountsTheBytesOfSharedPieces) {
  FrameSizes sizes;
  sizes.frame_bytes = 100;
  FrameBuilder builder(FirstFrame(), sizes);
  StepPiece piece;
  piece.shared = SharedSpan{0, 99};
  EXPECT_FALSE(builder.AddPiece(piece).has_value());
  EXPECT_TRUE(builder.AddPiece(piece).has_value());
}

TEST(FrameBuilderTest, CutsReportsTooLongForOneFrame) {
  FrameSizes sizes;
  sizes.frame_bytes = 1000;
  sizes.report_bytes = 100;
  FrameBuilder builder(FirstFrame(), sizes);
  builder.Begin(TokenOf(0, 0, 2));
  const auto frames = builder.AddReports(Reports(2, 150));
  EXPECT_GE(frames.size(), 3u);
  for (const StepFrame& frame : frames) {
    EXPECT_FALSE(frame.reports.empty());
    EXPECT_FALSE(frame.end);
  }
  EXPECT_FALSE(builder.End().reports.empty()) << "the last part travels with what follows";
}

TEST(FrameBuilderTest, WithoutSizesSendsWholeMessages) {
  FrameBuilder builder(FirstFrame(), FrameSizes());
  builder.Begin(TokenOf(0, 0, 2));
  const auto frames = builder.AddReports(Reports(2, 4 << 20));
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].reports.size(), 2u);
  const auto piece = builder.AddPiece(PieceOf(0, 1));
  ASSERT_TRUE(piece.has_value());
  EXPECT_TRUE(piece->reports.empty());
  EXPECT_TRUE(builder.End().gradients.empty());
}

TEST(FrameBuilderTest, LeavingDropsTheOpenContribution) {
  FrameSizes sizes;
  sizes.frame_bytes = 1000;
  FrameBuilder builder(FirstFrame(), sizes);
  builder.Begin(TokenOf(9, 4, 2));
  builder.AddReports(Reports(2, 4));
  builder.AddPiece(PieceOf(0, 20));
  const StepFrame frame = builder.Leave();
  EXPECT_TRUE(frame.leave);
  EXPECT_FALSE(frame.end);
  EXPECT_EQ(frame.block.count, 0);
  EXPECT_TRUE(frame.reports.empty());
  EXPECT_TRUE(frame.gradients.empty());
  EXPECT_EQ(builder.token().slot_count(), 0);
}

}  // namespace
}  // namespace lockstep
