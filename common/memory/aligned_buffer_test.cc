#include "lockstep/common/memory/aligned_buffer.h"

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/memory/testing/residency.h"

namespace lockstep {
namespace {

uintptr_t AddressOf(const AlignedBuffer& buffer) { return reinterpret_cast<uintptr_t>(buffer.data()); }

TEST(AlignedBufferTest, EveryBufferIsAlignedForTensors) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 5000, 3 << 20}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(AddressOf(buffer) % kTensorAlignment, 0u) << bytes;
    EXPECT_NE(buffer.data(), nullptr) << bytes;
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(buffer.handle(), nullptr);
    for (size_t i = 0; i < bytes; ++i) buffer.data()[i] = 1;
  }
}

TEST(AlignedBufferTest, EightMebibytesBeginAtAHugePage) {
  EXPECT_EQ(AddressOf(AlignedBuffer(4 * kHugePage)) % kHugePage, 0u);
  EXPECT_EQ(AddressOf(AlignedBuffer(5 * kHugePage + 1)) % kHugePage, 0u);
  EXPECT_EQ(AddressOf(AlignedBuffer::Shared(4 * kHugePage)) % kHugePage, 0u);
  EXPECT_EQ(AddressOf(AlignedBuffer::Shared(5 * kHugePage + 1)) % kHugePage, 0u);
}

TEST(AlignedBufferTest, SharedMemoryHasAHandle) {
  AlignedBuffer buffer = AlignedBuffer::Shared(1000);
  ASSERT_NE(buffer.handle(), nullptr);
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_EQ(AddressOf(buffer) % kTensorAlignment, 0u);
  buffer.data()[999] = 1;
}

TEST(AlignedBufferTest, PopulateAddsMemoryAndKeepsContents) {
  constexpr size_t kBytes = 12 << 20;
  for (const bool shared : {false, true}) {
    AlignedBuffer buffer = shared ? AlignedBuffer::Shared(kBytes) : AlignedBuffer(kBytes);
    buffer.data()[5] = 'x';
    if (!buffer.Populate(0, 1)) GTEST_SKIP() << "the kernel has no such call";
    EXPECT_FALSE(IsResident(buffer));
    EXPECT_TRUE(buffer.Populate(1, kBytes - 1));
    EXPECT_TRUE(IsResident(buffer));
    EXPECT_EQ(buffer.data()[5], 'x');
  }
}

TEST(AlignedBufferTest, PopulatesSharedMemoryOfAnySizeFully) {
  for (const size_t bytes : {kHugeBuffer - 1, kHugeBuffer, kHugeBuffer + 1, kHugeBuffer + 4097, 5 * kHugePage - 1}) {
    AlignedBuffer buffer = AlignedBuffer::Shared(bytes);
    buffer.data()[0] = 'x';
    buffer.data()[kHugePage] = 'y';
    buffer.data()[bytes - 1] = 'z';
    if (!buffer.Populate(0, bytes)) GTEST_SKIP() << "the kernel has no such call";
    EXPECT_TRUE(IsResident(buffer)) << bytes;
    EXPECT_EQ(buffer.data()[0], 'x') << bytes;
    EXPECT_EQ(buffer.data()[1], '\0') << bytes;
    EXPECT_EQ(buffer.data()[kHugePage], 'y') << bytes;
    EXPECT_EQ(buffer.data()[bytes - 1], 'z') << bytes;
  }
}

TEST(AlignedBufferTest, PopulateTakesNothingButTheBuffersOwn) {
  for (const size_t bytes : {1, 100, 5000, 300 << 10}) {
    AlignedBuffer buffer(bytes);
    buffer.data()[bytes - 1] = 'x';
    buffer.Populate(0, bytes);
    EXPECT_EQ(buffer.data()[bytes - 1], 'x');
  }
}

TEST(AlignedBufferTest, MovesWithItsContents) {
  AlignedBuffer from(12);
  from.as<float>()[2] = 4;
  const char* const begin = from.data();
  const AlignedBuffer to = std::move(from);
  EXPECT_EQ(to.data(), begin);
  EXPECT_EQ(to.as<float>()[2], 4);
  EXPECT_EQ(to.size(), 12u);
}

}  // namespace
}  // namespace lockstep
