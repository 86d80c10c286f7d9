#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/rpc/step/step_frame_receiver.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 64;

StepFrame FrameAt(uint64_t offset, uint64_t bytes, v1::DataType type = v1::DT_FLOAT) {
  StepFrame frame;
  frame.gradients.emplace_back();
  frame.gradients[0].content.set_type(type);
  frame.gradients[0].shared = SharedSpan{offset, bytes};
  return frame;
}

class WorkerMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = SharedMemory::Create(kBytes);
    ASSERT_TRUE(created.ok()) << created.status();
    shared_ = *std::move(created);
    ASSERT_TRUE(memory_.Map(shared_->handle()).ok());
  }

  std::string ErrorAt(uint64_t offset, uint64_t bytes) {
    StepFrame frame = FrameAt(offset, bytes);
    const absl::Status status = memory_.FindGradients(&frame);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  std::unique_ptr<SharedMemory> shared_;
  WorkerMemory memory_;
};

TEST_F(WorkerMemoryTest, AGradientIsReadWhereTheWorkerWroteIt) {
  const float written[] = {1, 2, 3};
  std::memcpy(shared_->data() + 8, written, sizeof(written));
  StepFrame frame = FrameAt(8, sizeof(written));
  ASSERT_TRUE(memory_.FindGradients(&frame).ok());
  const FloatChunks& content = frame.gradients[0].content;
  ASSERT_EQ(content.size(), 3);
  float read[3];
  content.CopyTo(0, 3, read);
  EXPECT_THAT(read, ::testing::ElementsAre(1, 2, 3));
}

TEST_F(WorkerMemoryTest, TheTypeOfAGradientStays) {
  StepFrame frame = FrameAt(0, 8, v1::DT_BFLOAT16);
  ASSERT_TRUE(memory_.FindGradients(&frame).ok());
  EXPECT_EQ(frame.gradients[0].content.type(), v1::DT_BFLOAT16);
  EXPECT_EQ(frame.gradients[0].content.size(), 4);
}

TEST_F(WorkerMemoryTest, TheWholeMemoryAndItsEndMayBeNamed) {
  StepFrame all = FrameAt(0, kBytes);
  EXPECT_TRUE(memory_.FindGradients(&all).ok());
  StepFrame nothing = FrameAt(kBytes, 0);
  EXPECT_TRUE(memory_.FindGradients(&nothing).ok());
}

TEST_F(WorkerMemoryTest, AGradientOutsideIsRefused) {
  EXPECT_EQ(ErrorAt(0, kBytes + 1), "a gradient lies at byte 0 with 65 bytes in shared memory of 64");
  EXPECT_THAT(ErrorAt(kBytes - 4, 8), HasSubstr("at byte 60 with 8 bytes"));
  EXPECT_THAT(ErrorAt(kBytes + 4, 0), HasSubstr("at byte 68"));
  EXPECT_THAT(ErrorAt(4, ~uint64_t{0}), HasSubstr("at byte 4")) << "the sum overflows";
  EXPECT_THAT(ErrorAt(~uint64_t{3}, 4), HasSubstr("with 4 bytes"));
}

TEST_F(WorkerMemoryTest, AGradientBetweenFloatsIsRefused) { EXPECT_THAT(ErrorAt(2, 4), HasSubstr("at byte 2")); }

TEST_F(WorkerMemoryTest, OneWrongGradientRefusesTheFrame) {
  StepFrame frame = FrameAt(0, 4);
  frame.gradients.push_back(FrameAt(kBytes, 4).gradients[0]);
  EXPECT_FALSE(memory_.FindGradients(&frame).ok());
}

TEST_F(WorkerMemoryTest, BytesInTheFrameStayWhereTheyAre) {
  const float sent[] = {7};
  StepFrame frame;
  frame.gradients.emplace_back();
  frame.gradients[0].content = FloatChunks(sent, 1);
  ASSERT_TRUE(memory_.FindGradients(&frame).ok());
  EXPECT_EQ(frame.gradients[0].content.Contiguous(0, 1), sent);
  EXPECT_TRUE(WorkerMemory().FindGradients(&frame).ok());
}

TEST(NoWorkerMemoryTest, RefusesGradientsThatLieInIt) {
  WorkerMemory none;
  EXPECT_EQ(none.size(), 0);
  StepFrame frame = FrameAt(0, 4);
  EXPECT_EQ(none.FindGradients(&frame).message(), "a gradient lies in shared memory; the stream has none");
}

TEST(NoWorkerMemoryTest, StaysNoneWhenItCannotBeMapped) {
  WorkerMemory none;
  v1::SharedMemoryHandle handle;
  handle.set_bytes(4096);
  EXPECT_FALSE(none.Map(handle).ok());
  EXPECT_FALSE(none.exists());
}

}  // namespace
}  // namespace lockstep
