#include <memory>
#include <thread>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/values/received_values.h"

namespace lockstep {
namespace {

SentBuffer TenElements() { return SentBuffer(std::make_shared<AlignedBuffer>(10 * sizeof(float))); }

TEST(SentBufferTest, UnheldElementsAreFree) {
  EXPECT_FALSE(SentBuffer().has_memory());
  SentBuffer buffer = TenElements();
  EXPECT_TRUE(buffer.has_memory());
  EXPECT_TRUE(buffer.IsFree());
  EXPECT_TRUE(buffer.IsFree(0, 10));
}

TEST(SentBufferTest, APartIsHeldUntilItsOwnerIsDropped) {
  SentBuffer buffer = TenElements();
  std::shared_ptr<const void> head = buffer.Hold(0, 4);
  std::shared_ptr<const void> tail = buffer.Hold(4, 6);
  const std::shared_ptr<const void> again = tail;
  for (const int64_t offset : {0, 3, 4, 9}) EXPECT_FALSE(buffer.IsFree(offset, 1)) << offset;
  EXPECT_FALSE(buffer.IsFree());
  head.reset();
  EXPECT_TRUE(buffer.IsFree(0, 4));
  EXPECT_TRUE(buffer.IsFree(3, 1));
  EXPECT_FALSE(buffer.IsFree(3, 2));
  EXPECT_FALSE(buffer.IsFree());
  tail.reset();
  EXPECT_FALSE(buffer.IsFree(4, 1)) << "another one holds it";
}

TEST(SentBufferTest, OwnersKeepTheMemory) {
  auto memory = std::make_shared<AlignedBuffer>(10 * sizeof(float));
  const std::weak_ptr<AlignedBuffer> watched = memory;
  std::shared_ptr<const void> owner;
  {
    SentBuffer buffer(std::move(memory));
    owner = buffer.Hold(2, 3);
  }
  EXPECT_FALSE(watched.expired());
  owner.reset();
  EXPECT_TRUE(watched.expired());
}

// The thread sanitizer detects writes that overtake the sender's reads.
TEST(SentBufferTest, WritesAFreePartDuringOtherReads) {
  for (int round = 0; round < 200; ++round) {
    SentBuffer buffer = TenElements();
    for (int i = 0; i < 10; ++i) buffer.as<float>()[i] = static_cast<float>(round);
    float head = -1, tail = -1;
    std::thread sender(
        [&, in_memory = buffer.as<float>(), first = buffer.Hold(0, 5), second = buffer.Hold(5, 5)]() mutable {
          head = in_memory[4];
          first.reset();
          tail = in_memory[5];
          second.reset();
        });
    while (!buffer.IsFree(0, 5)) {
    }
    for (int i = 0; i < 5; ++i) buffer.as<float>()[i] = -2;
    while (!buffer.IsFree()) {
    }
    for (int i = 5; i < 10; ++i) buffer.as<float>()[i] = -2;
    sender.join();
    EXPECT_EQ(head, round);
    EXPECT_EQ(tail, round);
  }
}

ParameterLayout Layout() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(variables { name: "a" dtype: DT_FLOAT shape: 2 trainable: true }
           variables { name: "b" dtype: DT_FLOAT shape: 5 trainable: true })pb",
      &model));
  return ParameterLayout::Create(model).value();
}

class VariableBuffersTest : public ::testing::Test {
 protected:
  VariableBuffers buffers_{Layout(), sizeof(float)};
};

TEST_F(VariableBuffersTest, ReusesUnneededBuffers) {
  SentBuffer first = buffers_.Get(1);
  const float* const place = first.as<float>();
  const SentBuffer second = buffers_.Get(1);
  buffers_.Put(1, std::move(first));
  EXPECT_NE(buffers_.Get(0).as<float>(), place) << "of another variable";
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

TEST_F(VariableBuffersTest, AGradientInFlightTakesTheNextValue) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  const std::shared_ptr<const void> sending = gradient.Hold(2, 3);
  buffers_.PutSent(1, std::move(gradient));
  SentBuffer value = buffers_.GetForParts(1);
  EXPECT_EQ(value.as<float>(), place);
  EXPECT_TRUE(value.IsFree(0, 2));
  EXPECT_FALSE(value.IsFree(2, 3));
  EXPECT_NE(buffers_.GetForParts(1).as<float>(), place) << "once";
}

TEST_F(VariableBuffersTest, DoesNotOverwriteAGradientInFlight) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  std::shared_ptr<const void> sending = gradient.Hold(0, 5);
  buffers_.PutSent(1, std::move(gradient));
  SentBuffer next = buffers_.Get(1);
  EXPECT_NE(next.as<float>(), place);
  EXPECT_TRUE(next.IsFree());
  sending.reset();
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

TEST_F(VariableBuffersTest, TheLaterGradientTakesTheNextValue) {
  SentBuffer first = buffers_.Get(1);
  const float* const first_place = first.as<float>();
  std::shared_ptr<const void> sending = first.Hold(0, 5);
  buffers_.PutSent(1, std::move(first));
  SentBuffer second = buffers_.Get(1);
  const float* const second_place = second.as<float>();
  buffers_.PutSent(1, std::move(second));
  SentBuffer value = buffers_.GetForParts(1);
  EXPECT_EQ(value.as<float>(), second_place);
  SentBuffer third = buffers_.GetForParts(1);
  EXPECT_NE(third.as<float>(), first_place);
  EXPECT_NE(third.as<float>(), second_place);
  sending.reset();
  EXPECT_EQ(buffers_.Get(1).as<float>(), first_place);
}

TEST_F(VariableBuffersTest, ReusesAnArrivedGradientInTheSameStep) {
  SentBuffer gradient = buffers_.Get(1);
  const float* const place = gradient.as<float>();
  gradient.Hold(0, 5).reset();
  buffers_.PutSent(1, std::move(gradient));
  EXPECT_EQ(buffers_.Get(1).as<float>(), place);
}

}  // namespace
}  // namespace lockstep
