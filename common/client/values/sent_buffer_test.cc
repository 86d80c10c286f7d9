#include "lockstep/common/client/values/sent_buffer.h"

#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

SentBuffer TenElements() { return SentBuffer(std::make_shared<AlignedBuffer>(10 * sizeof(float))); }

TEST(SentBufferTest, WhatNobodyHoldsIsFree) {
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

// The thread sanitizer detects a write that overtakes the sender's reads.
TEST(SentBufferTest, AFreePartIsWrittenWhileAnotherThreadReadsTheRest) {
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

}  // namespace
}  // namespace lockstep
