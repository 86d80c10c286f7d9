#include "lockstep/server/sync/workers/work_times.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

class WorkTimesTest : public ::testing::Test {
 protected:
  // Lets each of the workers 1, 2, ... contribute one slot, computed in the given time.
  void Step(const std::vector<absl::Duration>& computes) {
    for (size_t i = 0; i < computes.size(); ++i) {
      StepToken token;
      token.step = step_;
      token.block = {static_cast<int64_t>(i), 1};
      now_ += absl::Milliseconds(1);
      const StepTimes spent{absl::Milliseconds(1), computes[i], absl::Milliseconds(2), absl::Seconds(3)};
      times_.OnContributed(i + 1, token, computes[i], EncodeStepTimes(spent), now_);
    }
    times_.OnCommitted(++step_, now_);
  }

  int64_t step_ = 0;
  absl::Time now_ = kStart;
  WorkTimes times_{kStart};
};

TEST_F(WorkTimesTest, AWorkerIsSlowAfterThreeSteps) {
  for (const uint64_t session : {1, 2, 3}) times_.AddWorker(session, absl::StrCat("worker-", session));
  const absl::Duration fast = absl::Milliseconds(10), slow = absl::Milliseconds(60);
  for (int i = 0; i < 2; ++i) Step({fast, slow, fast});
  v1::WatchRunReply before;
  times_.Fill(&before);
  EXPECT_EQ(before.worker(1).slow_factor(), 0) << "two contributions may be an accident";
  Step({fast, slow, fast});
  v1::WatchRunReply reply;
  times_.Fill(&reply);
  ASSERT_EQ(reply.worker_size(), 3);
  EXPECT_EQ(reply.worker(0).slow_factor(), 0);
  EXPECT_NEAR(reply.worker(1).slow_factor(), 63.0 / 13, 0.1);
  EXPECT_NEAR(reply.worker(1).slow_seconds(), 0.05, 0.001);
}

TEST_F(WorkTimesTest, NamesAWorkerThatStaysSlow) {
  for (const uint64_t session : {1, 2}) times_.AddWorker(session, absl::StrCat("worker-", session));
  const absl::Duration fast = absl::Milliseconds(10), slow = absl::Milliseconds(60);
  for (int i = 0; i < 3; ++i) Step({fast, slow});
  for (absl::Duration time; time < WorkTimes::kSlowFor; time += WorkTimes::kComparePeriod) {
    now_ += WorkTimes::kComparePeriod;
    EXPECT_TRUE(times_.TakeSlow(now_).empty()) << "it may be disturbed for a moment";
  }
  now_ += WorkTimes::kComparePeriod;
  const auto found = times_.TakeSlow(now_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].worker, "worker-2");
  EXPECT_NEAR(absl::ToDoubleSeconds(found[0].longer), 0.05, 0.001);
  now_ += WorkTimes::kComparePeriod;
  EXPECT_TRUE(times_.TakeSlow(now_).empty()) << "it is named once a minute";
}

TEST_F(WorkTimesTest, OneOfTwoWorkersCanBeSlow) {
  for (const uint64_t session : {1, 2}) times_.AddWorker(session, absl::StrCat("worker-", session));
  for (int i = 0; i < 3; ++i) Step({absl::Milliseconds(60), absl::Milliseconds(10)});
  v1::WatchRunReply reply;
  times_.Fill(&reply);
  EXPECT_GT(reply.worker(0).slow_factor(), 4);
  EXPECT_EQ(reply.worker(1).slow_factor(), 0);
}

TEST_F(WorkTimesTest, ShortStepsMakeNoWorkerSlow) {
  for (const uint64_t session : {1, 2}) times_.AddWorker(session, "worker");
  for (int i = 0; i < 3; ++i) Step({absl::Milliseconds(5), absl::Microseconds(900)});
  v1::WatchRunReply reply;
  times_.Fill(&reply);
  EXPECT_EQ(reply.worker(0).slow_factor(), 0) << "4 ms are no matter";
}

TEST_F(WorkTimesTest, OneSlowStepMakesNoWorkerSlow) {
  for (const uint64_t session : {1, 2}) times_.AddWorker(session, "worker");
  const absl::Duration fast = absl::Milliseconds(10);
  for (int i = 0; i < 3; ++i) Step({i == 1 ? absl::Seconds(5) : fast, fast});
  v1::WatchRunReply reply;
  times_.Fill(&reply);
  EXPECT_EQ(reply.worker(0).slow_factor(), 0);
}

TEST_F(WorkTimesTest, TheTimeLineContinuesAtTheCursor) {
  times_.AddWorker(1, "worker-1");
  Step({absl::Milliseconds(10)});
  WorkTimes::Cursor cursor;
  v1::WatchRunReply first;
  times_.FillTimeLine(&cursor, &first);
  ASSERT_EQ(first.contribution_size(), 1);
  EXPECT_EQ(first.contribution(0).worker(), "worker-1");
  EXPECT_EQ(first.contribution(0).arrived(), 0.001);
  EXPECT_NEAR(first.contribution(0).times().compute(), 0.01, 1e-5);
  ASSERT_EQ(first.commit_size(), 1);
  EXPECT_EQ(first.commit(0).begun(), 0);
  Step({absl::Milliseconds(10)});
  times_.RemoveWorker(1);
  v1::WatchRunReply next;
  times_.FillTimeLine(&cursor, &next);
  ASSERT_EQ(next.contribution_size(), 1) << "also of a worker that is gone";
  EXPECT_EQ(next.contribution(0).step(), 1);
  EXPECT_EQ(next.commit(0).step(), 2);
}

TEST_F(WorkTimesTest, KeepsTheNewestOnly) {
  times_.AddWorker(1, "worker-1");
  for (int i = 0; i < 10000; ++i) Step({absl::Milliseconds(1)});
  WorkTimes::Cursor cursor;
  v1::WatchRunReply reply;
  times_.FillTimeLine(&cursor, &reply);
  EXPECT_EQ(reply.contribution_size(), 2000);
  EXPECT_EQ(reply.contribution(1999).step(), 9999);
  EXPECT_EQ(reply.commit_size(), 200);
  v1::WatchRunReply sums;
  times_.Fill(&sums);
  EXPECT_EQ(sums.counters().steps(), 10000);
  EXPECT_EQ(sums.worker(0).contributions(), 10000);
  EXPECT_NEAR(sums.worker(0).total().compute(), 10, 0.1);
  EXPECT_EQ(sums.counters().step_bucket(0), 10000);
}

}  // namespace
}  // namespace lockstep
