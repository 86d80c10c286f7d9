#include "lockstep/train/session/end/stop_signal.h"

#include <atomic>
#include <memory>

#include "gtest/gtest.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep::train {
namespace {

TEST(StopSignalTest, ASaveCallsThoseThatSaveAndStopsNothing) {
  StopSignal signal;
  int stops = 0, saves = 0;
  const int64_t chief = signal.Add([&] { ++stops; }, [&] { ++saves; });
  const int64_t worker = signal.Add([&] { ++stops; });
  EXPECT_TRUE(signal.RequestSave());
  EXPECT_TRUE(signal.RequestSave());
  EXPECT_EQ(saves, 2);
  EXPECT_FALSE(signal.requested());
  EXPECT_EQ(stops, 0);
  signal.Request();
  EXPECT_EQ(stops, 2);
  signal.Remove(chief);
  signal.Remove(worker);
}

TEST(StopSignalTest, ASaveBeforeThereIsASessionIsKeptForTheNext) {
  StopSignal signal;
  int saves = 0;
  signal.Remove(signal.Add([] {}));
  EXPECT_FALSE(signal.RequestSave());
  EXPECT_FALSE(signal.RequestSave());
  signal.Remove(signal.Add([] {}));
  signal.Remove(signal.Add([] {}, [&] { ++saves; }));
  EXPECT_EQ(saves, 1);
  signal.Remove(signal.Add([] {}, [&] { ++saves; }));
  EXPECT_EQ(saves, 1);
}

TEST(StopSignalTest, RemoveWaitsForBothCalls) {
  StopSignal signal;
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> goes_on{false};
  const auto call = [&] {
    ++begun;
    while (!goes_on) {
    }
    ++ended;
  };
  const int64_t id = signal.Add(call, call);
  const auto save = Executor::Threads()->Start("save", [&] { signal.RequestSave(); });
  const auto stop = Executor::Threads()->Start("stop", [&] { signal.Request(); });
  while (begun < 2) {
  }
  const auto release = Executor::Threads()->Start("release", [&] { goes_on = true; });
  signal.Remove(id);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace lockstep::train
