#include "lockstep/server/ps/versions/prefault.h"

#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/limited_threads.h"
#include "lockstep/common/memory/testing/residency.h"

namespace lockstep {
namespace {

// Large enough that its memory comes directly from the kernel.
constexpr size_t kLarge = 24 << 20;

class PrefaultTest : public ::testing::TestWithParam<bool> {};

TEST_P(PrefaultTest, ProvidesAllBuffers) {
  for (const size_t bytes : {size_t{100}, size_t{5 << 20}, kLarge}) {
    BufferPool pool(bytes, /*max_spare=*/2, /*shared=*/GetParam());
    BufferPool::Buffers fresh;
    pool.Fill(&fresh);
    Prefault(Executor::Threads(), fresh).Await();
    for (const auto& buffer : fresh) EXPECT_TRUE(IsResident(*buffer)) << bytes;
  }
}

TEST_P(PrefaultTest, KeepsConcurrentWrites) {
  BufferPool pool(kLarge, /*max_spare=*/1, GetParam());
  BufferPool::Buffers fresh;
  pool.Fill(&fresh);
  Prefault prefault(Executor::Threads(), std::move(fresh));
  const auto used = pool.Get();
  for (size_t i = 0; i < kLarge; i += 64) used->data()[i] = static_cast<char>(i / 64);
  prefault.Await();
  for (size_t i = 0; i < kLarge; i += 64) ASSERT_EQ(used->data()[i], static_cast<char>(i / 64)) << i;
}

INSTANTIATE_TEST_SUITE_P(Shared, PrefaultTest, ::testing::Bool());

TEST(PrefaultLifeTest, NothingToProvideIsNoThread) {
  Prefault none(nullptr, {});
  none.Await();
}

// An unused buffer is freed even if the Prefault still exists.
TEST(PrefaultLifeTest, ReleasesProvidedBuffers) {
  for (const size_t bytes : {size_t{100}, kLarge}) {
    BufferPool pool(bytes, /*max_spare=*/1);
    BufferPool::Buffers fresh;
    pool.Fill(&fresh);
    Prefault prefault(Executor::Threads(), fresh);
    prefault.Await();
    EXPECT_EQ(fresh.front().use_count(), 2) << "the pool's, and the one here";
  }
}

// The Prefault may end at any time, while the buffers are still in use.
TEST(PrefaultLifeTest, EndsWithItsOwner) {
  BufferPool pool(kLarge, /*max_spare=*/2);
  for (int i = 0; i < 20; ++i) {
    BufferPool::Buffers fresh;
    pool.Fill(&fresh);
    const Prefault prefault(Executor::Threads(), std::move(fresh));
    const auto used = pool.Get();
    used->data()[kLarge - 1] = 'x';
  }
  EXPECT_EQ(pool.num_spare(), 2u);
}

TEST(PrefaultLifeTest, WithoutAThreadNothingIsProvided) {
  LimitedThreads none(0);
  BufferPool pool(kLarge, /*max_spare=*/1);
  BufferPool::Buffers fresh;
  pool.Fill(&fresh);
  Prefault prefault(&none, fresh);
  EXPECT_EQ(none.refused(), 1);
  prefault.Await();
  EXPECT_EQ(fresh.front().use_count(), 2) << "the pool's, and the one here";
}

}  // namespace
}  // namespace lockstep
