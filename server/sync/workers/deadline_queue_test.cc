#include "lockstep/server/sync/workers/deadline_queue.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(DeadlineQueueTest, ReturnsWhatIsDueTheEarliestFirst) {
  DeadlineQueue queue;
  queue.Watch(1, kStart + absl::Seconds(2));
  queue.Watch(2, kStart + absl::Seconds(1));
  EXPECT_FALSE(queue.PopDue(kStart));
  EXPECT_EQ(queue.PopDue(kStart + absl::Seconds(2)), 2u);
  EXPECT_EQ(queue.PopDue(kStart + absl::Seconds(2)), 1u);
  EXPECT_FALSE(queue.PopDue(kStart + absl::Hours(1))) << "it is watched no more";
}

TEST(DeadlineQueueTest, APendingTimeStands) {
  DeadlineQueue queue;
  queue.Watch(1, kStart);
  queue.Watch(1, kStart + absl::Seconds(1));
  EXPECT_EQ(queue.PopDue(kStart), 1u);
  queue.Watch(1, kStart + absl::Seconds(1));
  EXPECT_FALSE(queue.PopDue(kStart));
  EXPECT_EQ(queue.PopDue(kStart + absl::Seconds(1)), 1u);
}

TEST(DeadlineQueueTest, ForgetsASession) {
  DeadlineQueue queue;
  for (uint64_t session = 1; session <= 3; ++session) queue.Watch(session, kStart);
  queue.Forget(1);
  queue.Forget(9);
  EXPECT_EQ(queue.PopDue(kStart), 2u);
  EXPECT_EQ(queue.PopDue(kStart), 3u);
  EXPECT_FALSE(queue.PopDue(kStart));
}

}  // namespace
}  // namespace lockstep
