#include "lockstep/common/base/process/stop_requests.h"

#include <csignal>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Meaning = StopRequests::Meaning;

absl::Time At(absl::Duration since_start) { return absl::UnixEpoch() + absl::Hours(5) + since_start; }

TEST(StopRequestsTest, AnyFirstSignalIsTheStop) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGXCPU}) {
    StopRequests requests;
    EXPECT_EQ(requests.On(signal, At(absl::ZeroDuration())), Meaning::kStop);
  }
}

TEST(StopRequestsTest, RepeatedTermOrHangupIsTheSameRequest) {
  for (const int first : {SIGTERM, SIGINT, SIGHUP}) {
    StopRequests requests;
    requests.On(first, At(absl::ZeroDuration()));
    for (const absl::Duration later :
         {absl::ZeroDuration(), absl::Milliseconds(50), absl::Seconds(1), absl::Hours(1)}) {
      EXPECT_EQ(requests.On(SIGTERM, At(later)), Meaning::kSame);
      EXPECT_EQ(requests.On(SIGHUP, At(later)), Meaning::kSame);
    }
  }
}

TEST(StopRequestsTest, OnlyALaterInterruptEndsImmediately) {
  for (const int first : {SIGTERM, SIGINT, SIGHUP}) {
    StopRequests requests;
    requests.On(first, At(absl::ZeroDuration()));
    EXPECT_EQ(requests.On(SIGINT, At(absl::ZeroDuration())), Meaning::kSame);
    EXPECT_EQ(requests.On(SIGINT, At(absl::Milliseconds(999))), Meaning::kSame);
    EXPECT_EQ(requests.On(SIGINT, At(absl::Seconds(1))), Meaning::kAtOnce);
    EXPECT_EQ(requests.On(SIGTERM, At(absl::Seconds(2))), Meaning::kSame);
    EXPECT_EQ(requests.On(SIGINT, At(absl::Seconds(3))), Meaning::kAtOnce);
  }
}

TEST(StopRequestsTest, SignalsInBetweenDoNotPutTheSecondOff) {
  StopRequests requests;
  requests.On(SIGTERM, At(absl::ZeroDuration()));
  requests.On(SIGINT, At(absl::Milliseconds(900)));
  requests.On(SIGTERM, At(absl::Milliseconds(950)));
  EXPECT_EQ(requests.On(SIGINT, At(absl::Seconds(1))), Meaning::kAtOnce);
}

TEST(StopRequestsTest, UserSignalsAskForASaveUntilAStopDoes) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    StopRequests requests;
    EXPECT_EQ(requests.On(signal, At(absl::ZeroDuration())), Meaning::kSave);
    EXPECT_EQ(requests.On(signal, At(absl::ZeroDuration())), Meaning::kSave);
    EXPECT_EQ(requests.On(SIGTERM, At(absl::ZeroDuration())), Meaning::kStop);
    EXPECT_EQ(requests.On(signal, At(absl::Seconds(2))), Meaning::kSame);
    EXPECT_EQ(requests.On(SIGINT, At(absl::Seconds(2))), Meaning::kAtOnce);
  }
}

}  // namespace
}  // namespace lockstep
