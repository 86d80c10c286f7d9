#include "lockstep/common/base/process/trace_recorder.h"

#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(TraceRecorderTest, KeepsEventsBegunWhileRecording) {
  TraceRecorder* const recorder = TraceRecorder::Process();
  { TraceSpan early("early"); }
  EXPECT_FALSE(recorder->recording());
  recorder->Start();
  {
    TraceSpan outer("out", "er");
    TraceSpan inner("inner");
  }
  auto open = std::make_unique<TraceSpan>("open");
  const auto events = recorder->Stop();
  open.reset();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "inner");
  EXPECT_EQ(events[1].name, "outer");
  EXPECT_LE(events[1].begin, events[0].begin);
  EXPECT_LE(events[0].end, events[1].end);
  EXPECT_EQ(events[2].name, "open");
  EXPECT_LE(events[1].end, events[2].end) << "so far";
  EXPECT_TRUE(recorder->Stop().empty());
}

TEST(TraceRecorderTest, DistinguishesThreads) {
  TraceRecorder recorder;
  recorder.Start();
  const absl::Time now = absl::Now();
  recorder.Add("here", now, now);
  std::thread([&] { recorder.Add("there", now, now); }).join();
  recorder.Add("here", now, now);
  const auto events = recorder.Stop();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].thread, events[1].thread);
  EXPECT_EQ(events[0].thread, events[2].thread);
}

TEST(TraceRecorderTest, StartForgets) {
  TraceRecorder recorder;
  recorder.Start();
  recorder.Add("before", absl::Now(), absl::Now());
  recorder.Start();
  EXPECT_TRUE(recorder.Stop().empty());
}

}  // namespace
}  // namespace lockstep
