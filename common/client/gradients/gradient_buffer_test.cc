#include "lockstep/common/client/gradients/gradient_buffer.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/testing/residency.h"

namespace lockstep {
namespace {

ParameterLayout Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
           variables { name: "b" dtype: DT_FLOAT shape: 5 trainable: true })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

class GradientBufferTest : public ::testing::Test {
 protected:
  const ParameterLayout layout_ = Layout();
  VariableBuffers buffers_{layout_, sizeof(float)};
};

TEST_F(GradientBufferTest, PiecesAreTheMemoryThatTheModelWrote) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/false, &buffers_);
  for (int i = 0; i < 5; ++i) gradients.Variable(1)[i] = static_cast<float>(i);
  const StepPiece piece = gradients.Piece(1, 2, 3, /*in_place=*/false);
  EXPECT_EQ(piece.variable, 1);
  EXPECT_EQ(piece.offset, 2);
  EXPECT_FALSE(piece.shared.has_value());
  EXPECT_EQ(piece.content.type(), v1::DT_FLOAT);
  EXPECT_EQ(piece.content.Contiguous(0, 3), gradients.Variable(1) + 2) << "nothing is copied";
  EXPECT_EQ(gradients.handle(), nullptr);
}

TEST_F(GradientBufferTest, EncodesSixteenBitPiecesSeparately) {
  GradientBuffer gradients(&layout_, v1::DT_BFLOAT16, /*shareable=*/false, &buffers_);
  gradients.Variable(0)[0] = 1.5f;
  gradients.Variable(0)[1] = -2;
  const StepPiece piece = gradients.Piece(0, 0, 2, /*in_place=*/false);
  EXPECT_EQ(piece.content.type(), v1::DT_BFLOAT16);
  EXPECT_EQ(piece.content.bytes(), 4u);
  float decoded[2];
  piece.content.CopyTo(0, 2, decoded);
  EXPECT_EQ(decoded[0], 1.5f);
  EXPECT_EQ(decoded[1], -2);
  gradients.Variable(1)[3] = 7;
  gradients.Piece(1, 3, 1, /*in_place=*/false).content.CopyTo(0, 1, decoded);
  EXPECT_EQ(decoded[0], 7) << "a piece in the middle of a variable";
}

TEST_F(GradientBufferTest, SharedPiecesSayWhereTheyLie) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/true, &buffers_);
  if (gradients.handle() == nullptr) GTEST_SKIP() << "this system shares no memory";
  const StepPiece piece = gradients.Piece(1, 2, 3, /*in_place=*/true);
  ASSERT_TRUE(piece.shared.has_value());
  EXPECT_EQ(piece.shared->offset, (layout_.variables()[1].flat_offset + 2) * sizeof(float));
  EXPECT_EQ(piece.shared->bytes, 3 * sizeof(float));
  EXPECT_FALSE(gradients.Piece(1, 2, 3, /*in_place=*/false).shared.has_value());
}

TEST_F(GradientBufferTest, SharesTrainedVariablesAlone) {
  v1::ModelSpec model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "before" dtype: DT_FLOAT shape: 1000000 }
           variables { name: "first" dtype: DT_FLOAT shape: 1000000 trainable: true }
           variables { name: "mean" dtype: DT_FLOAT shape: 64 }
           variables { name: "second" dtype: DT_FLOAT shape: 1000000 trainable: true }
           update_ops { variable: "mean" })pb",
      &model));
  const ParameterLayout layout = ParameterLayout::Create(model).value();
  VariableBuffers buffers(layout, sizeof(float));
  GradientBuffer gradients(&layout, v1::DT_FLOAT, /*shareable=*/true, &buffers);
  if (gradients.handle() == nullptr) GTEST_SKIP() << "this system shares no memory";
  EXPECT_EQ(gradients.handle()->bytes(), 2000000 * sizeof(float));
  for (const int trained : {1, 3}) {
    const size_t pages = ResidentPages(gradients.Variable(trained), 1000000 * sizeof(float));
    if (pages == 0) GTEST_SKIP() << "the kernel has no such call";
    EXPECT_GE(pages, 1000000 * sizeof(float) / 4096);
  }
}

TEST_F(GradientBufferTest, UntilItIsSentAGradientHasItsPlace) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/false, &buffers_);
  float* const place = gradients.Variable(1);
  gradients.Reclaim();
  EXPECT_EQ(gradients.Variable(1), place);
}

TEST_F(GradientBufferTest, SentGradientsFreeTheirMemory) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/false, &buffers_);
  const float* const place = gradients.Variable(1);
  { const StepPiece piece = gradients.Piece(1, 0, 5, /*in_place=*/false); }
  gradients.Sent(1);
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

TEST_F(GradientBufferTest, APieceHoldsNoMoreThanItself) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/false, &buffers_);
  StepPiece head = gradients.Piece(1, 0, 2, /*in_place=*/false);
  const StepPiece tail = gradients.Piece(1, 2, 3, /*in_place=*/false);
  gradients.Sent(1);
  head.owner.reset();
  SentBuffer memory = buffers_.GetForParts(1);
  EXPECT_TRUE(memory.IsFree(0, 2));
  for (const int64_t offset : {2, 3, 4}) EXPECT_FALSE(memory.IsFree(offset, 1)) << offset;
}

TEST_F(GradientBufferTest, EncodingFreesTheBufferImmediately) {
  GradientBuffer gradients(&layout_, v1::DT_HALF, /*shareable=*/false, &buffers_);
  const float* const place = gradients.Variable(1);
  const StepPiece piece = gradients.Piece(1, 0, 5, /*in_place=*/false);
  gradients.Sent(1);
  EXPECT_EQ(buffers_.Get(1).as<float>(), place) << "the sender reads the encoded ones";
}

TEST_F(GradientBufferTest, LeavesMemoryToASenderStillReading) {
  for (const v1::DataType type : {v1::DT_FLOAT, v1::DT_HALF}) {
    GradientBuffer gradients(&layout_, type, /*shareable=*/false, &buffers_);
    gradients.Variable(1)[0] = 3;
    const StepPiece late = gradients.Piece(1, 0, 1, /*in_place=*/false);
    gradients.Sent(1);
    gradients.Variable(1)[0] = 4;
    gradients.Piece(1, 0, 1, /*in_place=*/false);
    float value = 0;
    late.content.CopyTo(0, 1, &value);
    EXPECT_EQ(value, 3) << type;
  }
}

TEST_F(GradientBufferTest, NeverReusesSharedMemoryHeldOnce) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/true, &buffers_);
  if (gradients.handle() == nullptr) GTEST_SKIP() << "this system shares no memory";
  gradients.Variable(0)[0] = 3;
  StepPiece late = gradients.Piece(0, 0, 1, /*in_place=*/false);
  EXPECT_TRUE(gradients.Piece(0, 0, 1, /*in_place=*/true).shared.has_value());
  gradients.Sent(0);
  gradients.Reclaim();
  gradients.Variable(0)[0] = 4;
  float value = 0;
  late.content.CopyTo(0, 1, &value);
  EXPECT_EQ(value, 3);
  late = StepPiece();
  gradients.Reclaim();
  const StepPiece next = gradients.Piece(0, 0, 1, /*in_place=*/true);
  EXPECT_FALSE(next.shared.has_value()) << "this is not the memory that the chief mapped";
  next.content.CopyTo(0, 1, &value);
  EXPECT_EQ(value, 4);
}

TEST_F(GradientBufferTest, ReusesUnreadSharedMemory) {
  GradientBuffer gradients(&layout_, v1::DT_FLOAT, /*shareable=*/true, &buffers_);
  if (gradients.handle() == nullptr) GTEST_SKIP() << "this system shares no memory";
  const float* const place = gradients.Variable(0);
  gradients.Piece(0, 0, 1, /*in_place=*/false);
  gradients.Sent(0);
  gradients.Reclaim();
  EXPECT_EQ(gradients.Variable(0), place);
  EXPECT_TRUE(gradients.Piece(0, 0, 1, /*in_place=*/true).shared.has_value());
}

// The thread sanitizer detects a write that overtakes the sender's reads.
TEST_F(GradientBufferTest, ASenderNeverReadsTheNextValues) {
  for (const bool shareable : {false, true}) {
    for (int round = 0; round < 200; ++round) {
      // Use a new buffer in each round, because shared memory that a sender still holds is not reused.
      GradientBuffer gradients(&layout_, v1::DT_FLOAT, shareable, &buffers_);
      const auto expected = static_cast<float>(round);
      gradients.Variable(1)[0] = expected;
      float seen = -1;
      std::atomic<bool> dropped{false};
      std::thread sender([&seen, &dropped, piece = gradients.Piece(1, 0, 1, /*in_place=*/false)]() mutable {
        piece.content.CopyTo(0, 1, &seen);
        piece.owner.reset();
        dropped.store(true, std::memory_order_relaxed);
      });
      gradients.Sent(1);
      // In half of the rounds the memory is already free and only the order of the reads matters.
      while (round % 2 == 0 && !dropped.load(std::memory_order_relaxed)) {
      }
      gradients.Reclaim();
      gradients.Variable(1)[0] = -2;
      sender.join();
      EXPECT_EQ(seen, expected);
    }
  }
}

}  // namespace
}  // namespace lockstep
