#include "lockstep/common/memory/buffer_pool.h"

#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(BufferPoolTest, BuffersReturnWhenTheLastOwnerLetsGo) {
  BufferPool pool(100, /*max_spare=*/1);
  std::shared_ptr<AlignedBuffer> buffer = pool.Get();
  const AlignedBuffer* const first = buffer.get();
  EXPECT_EQ(buffer->size(), 100u);
  std::shared_ptr<const AlignedBuffer> reader = buffer;
  buffer.reset();
  EXPECT_NE(pool.Get().get(), first) << "a reader still has it";
  buffer = pool.Get();
  reader.reset();
  buffer.reset();
  EXPECT_NE(pool.Get(), nullptr);
}

TEST(BufferPoolTest, KeepsAtMostSoManySpareBuffers) {
  BufferPool pool(64, /*max_spare=*/2);
  std::set<const AlignedBuffer*> before;
  {
    std::vector<std::shared_ptr<AlignedBuffer>> buffers;
    for (int i = 0; i < 5; ++i) {
      buffers.push_back(pool.Get());
      before.insert(buffers.back().get());
    }
    EXPECT_EQ(before.size(), 5u) << "no buffer has two owners";
  }
  EXPECT_EQ(pool.num_spare(), 2u);
  const auto reused = pool.Get();
  EXPECT_EQ(before.count(reused.get()), 1u);
  EXPECT_EQ(pool.num_spare(), 1u);
}

TEST(BufferPoolTest, FillsItsFreeList) {
  BufferPool pool(10000, /*max_spare=*/2);
  const auto owned = pool.Get();
  owned->data()[0] = 'x';
  BufferPool::Buffers taken;
  pool.Fill(&taken);
  EXPECT_EQ(pool.num_spare(), 2u);
  ASSERT_EQ(taken.size(), 2u);
  pool.Fill(&taken);
  EXPECT_EQ(pool.num_spare(), 2u);
  EXPECT_EQ(taken.size(), 2u) << "it was full";
  EXPECT_EQ(owned->data()[0], 'x');
  const auto first = pool.Get();
  EXPECT_EQ(first.get(), taken[0].get());
  EXPECT_EQ(pool.num_spare(), 1u);
  pool.Fill(&taken);
  EXPECT_EQ(pool.num_spare(), 2u);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(pool.Get().get(), taken[1].get()) << "those that were there are the first to go";
}

TEST(BufferPoolTest, ABufferMayOutliveThePool) {
  std::shared_ptr<AlignedBuffer> buffer;
  {
    BufferPool pool(64, 2);
    buffer = pool.Get();
  }
  buffer->data()[63] = 1;
  buffer.reset();
}

TEST(BufferPoolTest, ManyThreadsMayUseIt) {
  BufferPool pool(64, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        const auto buffer = pool.Get();
        buffer->data()[0] = static_cast<char>(t);
        EXPECT_EQ(buffer->data()[0], static_cast<char>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.num_spare(), 2u);
}

}  // namespace
}  // namespace lockstep
