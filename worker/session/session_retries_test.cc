#include "lockstep/worker/session/session_retries.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(10);

class SessionRetriesTest : public ::testing::Test {
 protected:
  absl::StatusOr<absl::Duration> FailAfter(absl::Duration time, const absl::Status& status) {
    now_ += time;
    return retries_.OnFailure(status, now_, kLimit);
  }
  // Opens a session and fails it.
  absl::StatusOr<absl::Duration> FailOpenAfter(absl::Duration time, const absl::Status& status) {
    retries_.OnAnswer();
    retries_.OnOpen();
    return FailAfter(time, status);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  SessionRetries retries_{"grpc://chief:1", now_, /*seed=*/3};
};

TEST_F(SessionRetriesTest, SurvivesWhatARestartOfTheChiefCauses) {
  for (const auto code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kAborted, absl::StatusCode::kCancelled,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnknown, absl::StatusCode::kInternal}) {
    EXPECT_TRUE(SessionRetries::Survives(absl::Status(code, "")));
  }
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kFailedPrecondition,
                          absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnimplemented}) {
    EXPECT_FALSE(SessionRetries::Survives(absl::Status(code, "")));
    EXPECT_EQ(FailAfter(absl::ZeroDuration(), absl::Status(code, "why")).status(), absl::Status(code, "why"));
  }
}

absl::Status EndOfRun() {
  MemoryFileSystem fs;
  EXPECT_TRUE(fs.CreateDirectory("/run").ok());
  EXPECT_TRUE(WriteFileAtomically(&fs, "/run/chief", EndLine(absl::OkStatus())).ok());
  return FindTargets(&fs, ParseMasterAddress("file:/run/chief").value()).status();
}

TEST_F(SessionRetriesTest, BelievesAnEndRepeatedAfterTheGrace) {
  EXPECT_TRUE(FailAfter(kLimit / 2, EndOfRun()).ok());
  EXPECT_TRUE(FailAfter(SessionRetries::kEndGrace - absl::Milliseconds(1), EndOfRun()).ok());
  EXPECT_EQ(FailAfter(absl::Milliseconds(1), EndOfRun()).status(), EndOfRun());
}

TEST_F(SessionRetriesTest, AnEndThatWasTakenBackIsForgotten) {
  EXPECT_TRUE(FailAfter(absl::ZeroDuration(), EndOfRun()).ok());
  EXPECT_TRUE(FailAfter(SessionRetries::kEndGrace, absl::UnavailableError("no chief has written it yet")).ok());
  EXPECT_TRUE(FailAfter(absl::ZeroDuration(), EndOfRun()).ok());
}

TEST_F(SessionRetriesTest, AfterASessionTheEndIsBelievedAtOnce) {
  EXPECT_TRUE(FailOpenAfter(absl::ZeroDuration(), absl::UnavailableError("gone")).ok());
  EXPECT_EQ(FailAfter(absl::ZeroDuration(), EndOfRun()).status(), EndOfRun());
}

TEST_F(SessionRetriesTest, WaitsForAnEndAtMostTheChiefWait) {
  EXPECT_TRUE(retries_.OnFailure(EndOfRun(), now_, absl::Seconds(1)).ok());
  EXPECT_EQ(retries_.OnFailure(EndOfRun(), now_ + absl::Seconds(1), absl::Seconds(1)).status(), EndOfRun());
}

TEST_F(SessionRetriesTest, AbsenceBeginsWithTheFirstFailure) {
  EXPECT_TRUE(FailOpenAfter(absl::Hours(3), absl::UnavailableError("gone")).ok());
  EXPECT_TRUE(FailAfter(kLimit - absl::Milliseconds(1), absl::UnavailableError("gone")).ok());
  const auto given_up = FailAfter(absl::Milliseconds(1), absl::UnavailableError("connection refused"));
  EXPECT_TRUE(absl::IsUnavailable(given_up.status()));
  EXPECT_THAT(std::string(given_up.status().message()),
              HasSubstr("the chief at grpc://chief:1 has been unreachable for 10s: connection refused"));
}

TEST_F(SessionRetriesTest, AChiefThatIsNeverThereIsGivenUpAfterTheLimit) {
  EXPECT_TRUE(FailAfter(kLimit / 2, absl::UnavailableError("nobody")).ok());
  EXPECT_FALSE(FailAfter(kLimit / 2, absl::UnavailableError("nobody")).ok());
}

TEST_F(SessionRetriesTest, WaitsForARestoringChiefWithDelays) {
  absl::Duration last;
  for (int i = 0; i < 100; ++i) {
    retries_.OnAnswer();  // to GetRunSpec
    const auto delay = FailAfter(absl::Seconds(1), absl::UnavailableError("the chief is initializing the model"));
    ASSERT_TRUE(delay.ok()) << delay.status();
    last = *delay;
  }
  EXPECT_GT(last, absl::Milliseconds(600)) << "of a second, less the jitter";
  EXPECT_LE(last, absl::Seconds(1));
  retries_.OnProgress();
  retries_.OnAnswer();
  EXPECT_LE(*FailAfter(absl::Seconds(1), absl::AbortedError("restarted")), absl::Milliseconds(50));
}

TEST_F(SessionRetriesTest, WhomAChiefSendsAwayComesAgainAtOnceAFewTimes) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < SessionRetries::kAtOnce; ++i) {
      EXPECT_EQ(*FailOpenAfter(absl::ZeroDuration(), absl::AbortedError("variables were set")), absl::ZeroDuration());
    }
    EXPECT_GT(*FailOpenAfter(absl::ZeroDuration(), absl::AbortedError("and again")), absl::ZeroDuration());
    absl::Duration last;
    for (int i = 0; i < 5; ++i) last = *FailOpenAfter(absl::ZeroDuration(), absl::AbortedError("and again"));
    EXPECT_GT(last, absl::Milliseconds(600)) << "no broken chief is hammered";
    retries_.OnProgress();
  }
  EXPECT_GT(*FailAfter(absl::ZeroDuration(), absl::AbortedError("by somebody between")), absl::ZeroDuration())
      << "the chief itself has not answered";
  EXPECT_GT(*FailOpenAfter(absl::ZeroDuration(), absl::UnavailableError("gone")), absl::ZeroDuration());
}

TEST_F(SessionRetriesTest, GivesUpAfterFruitlessSessions) {
  for (int i = 0; i < 11; ++i) {
    const auto delay = FailOpenAfter(absl::Seconds(1), absl::InternalError("RST_STREAM"));
    ASSERT_EQ(delay.ok(), i < 10) << i;
    if (!delay.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(delay.status())) << "starting again may help";
      EXPECT_THAT(std::string(delay.status().message()), HasSubstr("brought anything for 10s: RST_STREAM"));
    }
  }
}

// This happens if the worker is waiting for a token while others compute and the chief sets variables at every step.
TEST_F(SessionRetriesTest, AChiefThatSendsAnIdleWorkerAwayIsNeverGivenUp) {
  for (int i = 0; i < 100; ++i) {
    const auto delay = FailOpenAfter(absl::Seconds(1), absl::AbortedError("variables were set"));
    ASSERT_TRUE(delay.ok()) << i << ": " << delay.status();
  }
}

TEST_F(SessionRetriesTest, ASessionThatBroughtSomethingMayEndInAnyOfThem) {
  for (int i = 0; i < 100; ++i) {
    retries_.OnProgress();
    EXPECT_TRUE(FailOpenAfter(absl::Seconds(20), absl::UnknownError("Stream removed")).ok());
  }
}

}  // namespace
}  // namespace lockstep
