#include "lockstep/worker/session/worker_protocol.h"

#include <functional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Phase = WorkerProtocol::Phase;
using Effects = WorkerProtocol::Effects;
using Next = Effects::Next;

const absl::Status kCancelled = absl::CancelledError("the block is not wanted");

class WorkerProtocolTest : public ::testing::Test {
 protected:
  // Leads it from its start to a phase.
  static WorkerProtocol In(Phase phase) {
    WorkerProtocol protocol;
    if (phase != Phase::kClosed) protocol.OnOpen();
    if (phase == Phase::kComputing) protocol.OnToken();
    EXPECT_EQ(protocol.phase(), phase);
    return protocol;
  }
  static WorkerProtocol StoppingIn(Phase phase) {
    WorkerProtocol protocol = In(phase);
    protocol.OnStop();
    return protocol;
  }
  static void ExpectEnd(const Effects& effects, const absl::Status& status, bool final, bool leave) {
    EXPECT_EQ(effects.next, Next::kEnd);
    EXPECT_EQ(effects.end.status.code(), status.code()) << effects.end.status;
    EXPECT_EQ(effects.end.final, final);
    EXPECT_EQ(effects.leave, leave);
  }
};

TEST_F(WorkerProtocolTest, AnOpenSessionAwaitsAToken) {
  WorkerProtocol protocol;
  EXPECT_EQ(protocol.OnOpen().next, Next::kAwaitToken);
  EXPECT_EQ(protocol.phase(), Phase::kAwaiting);
}

TEST_F(WorkerProtocolTest, ASessionThatOpensAfterAStopEndsWithoutAWord) {
  WorkerProtocol protocol = StoppingIn(Phase::kClosed);
  ExpectEnd(protocol.OnOpen(), kCancelled, /*final=*/false, /*leave=*/false);
  EXPECT_EQ(protocol.phase(), Phase::kClosed);
}

TEST_F(WorkerProtocolTest, ATokenIsComputedAndThenTheNextOneAwaited) {
  WorkerProtocol protocol = In(Phase::kAwaiting);
  Effects effects = protocol.OnToken();
  EXPECT_EQ(effects.next, Next::kCompute);
  EXPECT_FALSE(effects.progress) << "nothing was computed yet";
  EXPECT_EQ(protocol.phase(), Phase::kComputing);
  EXPECT_EQ(protocol.OnBlock(absl::OkStatus(), false).next, Next::kAwaitToken);
  EXPECT_EQ(protocol.phase(), Phase::kAwaiting);
  effects = protocol.OnToken();
  EXPECT_EQ(effects.next, Next::kCompute);
  EXPECT_TRUE(effects.progress) << "the block before was taken";
}

TEST_F(WorkerProtocolTest, ATokenThatComesAfterAStopIsGivenBack) {
  WorkerProtocol protocol = StoppingIn(Phase::kComputing);
  EXPECT_EQ(protocol.OnBlock(absl::OkStatus(), false).next, Next::kAwaitToken) << "which ends the contribution";
  const Effects effects = protocol.OnToken();
  ExpectEnd(effects, kCancelled, /*final=*/false, /*leave=*/true);
  EXPECT_TRUE(effects.progress);
}

TEST_F(WorkerProtocolTest, TheEndOfTheRunIsFinal) {
  WorkerProtocol well = In(Phase::kAwaiting);
  ExpectEnd(well.OnFinished(""), absl::OkStatus(), /*final=*/true, /*leave=*/true);
  EXPECT_EQ(well.phase(), Phase::kClosed);
  WorkerProtocol failed = In(Phase::kAwaiting);
  const Effects effects = failed.OnFinished("the loss of step 5 is not finite");
  ExpectEnd(effects, absl::InvalidArgumentError(""), /*final=*/true, /*leave=*/true);
  EXPECT_EQ(effects.end.status.message(), "the loss of step 5 is not finite");
}

TEST_F(WorkerProtocolTest, AFailedWaitEndsTheSession) {
  ExpectEnd(In(Phase::kAwaiting).OnError(absl::AbortedError("generation 1 is over")), absl::AbortedError(""),
            /*final=*/false, /*leave=*/false);
  ExpectEnd(StoppingIn(Phase::kAwaiting).OnError(kCancelled), kCancelled, /*final=*/false, /*leave=*/true);
}

TEST_F(WorkerProtocolTest, AStreamThatTheChiefEndsHasTakenTheBlock) {
  for (const bool computed : {false, true}) {
    for (const absl::Status& error : {absl::AbortedError("variables were set"), absl::UnavailableError("gone")}) {
      WorkerProtocol protocol = In(computed ? Phase::kComputing : Phase::kAwaiting);
      if (computed) protocol.OnBlock(absl::OkStatus(), false);
      const Effects effects = protocol.OnError(error);
      ExpectEnd(effects, error, /*final=*/false, /*leave=*/false);
      EXPECT_EQ(effects.progress, computed && absl::IsAborted(error)) << error;
    }
  }
}

TEST_F(WorkerProtocolTest, ABlockThatIsDroppedForAStopIsFollowedByAGoodbye) {
  ExpectEnd(StoppingIn(Phase::kComputing).OnBlock(kCancelled, false), kCancelled, /*final=*/false, /*leave=*/true);
}

TEST_F(WorkerProtocolTest, ABlockThatIsDroppedBecauseTheRunIsOverIsFollowedByTheNewsOfIt) {
  WorkerProtocol protocol = In(Phase::kComputing);
  protocol.OnHeartbeat(absl::OkStatus(), /*finished=*/true);
  EXPECT_EQ(protocol.OnBlock(kCancelled, false).next, Next::kAwaitToken);
}

TEST_F(WorkerProtocolTest, ABlockThatIsDroppedForNoneOfTheseEndsTheSession) {
  ExpectEnd(In(Phase::kComputing).OnBlock(kCancelled, false), kCancelled, /*final=*/false, /*leave=*/false);
}

TEST_F(WorkerProtocolTest, AFailureOfTheStreamIsNotFinalAndOneOfTheWorkerIs) {
  const absl::Status broken = absl::UnavailableError("Socket closed");
  ExpectEnd(In(Phase::kComputing).OnBlock(broken, /*own=*/false), broken, /*final=*/false, /*leave=*/false);
  ExpectEnd(In(Phase::kComputing).OnBlock(broken, /*own=*/true), broken, /*final=*/true, /*leave=*/false);
  ExpectEnd(StoppingIn(Phase::kComputing).OnBlock(broken, /*own=*/false), broken, /*final=*/false, /*leave=*/false);
}

TEST_F(WorkerProtocolTest, HeartbeatsShowProgressButWhileABlockIsComputed) {
  for (const Phase phase : {Phase::kClosed, Phase::kAwaiting, Phase::kComputing}) {
    WorkerProtocol protocol = In(phase);
    const Effects effects = protocol.OnHeartbeat(absl::OkStatus(), /*finished=*/false);
    EXPECT_EQ(effects.progress, phase != Phase::kComputing);
    EXPECT_FALSE(effects.drop);
    EXPECT_FALSE(protocol.OnHeartbeat(absl::UnavailableError("gone"), /*finished=*/false).progress);
    EXPECT_EQ(protocol.phase(), phase);
  }
}

TEST_F(WorkerProtocolTest, HeartbeatsDropABlockThatNobodyWants) {
  for (const Phase phase : {Phase::kAwaiting, Phase::kComputing}) {
    EXPECT_TRUE(In(phase).OnHeartbeat(absl::OkStatus(), /*finished=*/true).drop);
    EXPECT_TRUE(In(phase).OnHeartbeat(absl::AbortedError("unknown session"), /*finished=*/false).drop);
    EXPECT_FALSE(In(phase).OnHeartbeat(absl::UnavailableError("gone"), /*finished=*/false).drop) << "it may come back";
  }
}

TEST_F(WorkerProtocolTest, WhatAHeartbeatSaidIsForgottenInTheNextSession) {
  WorkerProtocol protocol = In(Phase::kComputing);
  protocol.OnHeartbeat(absl::OkStatus(), /*finished=*/true);
  protocol.OnBlock(absl::UnavailableError("Socket closed"), /*own=*/false);
  protocol.OnOpen();
  EXPECT_FALSE(protocol.OnToken().progress);
  EXPECT_EQ(protocol.OnBlock(kCancelled, false).next, Next::kEnd);
}

TEST_F(WorkerProtocolTest, AStreamThatBreaksWhenTheRunHasEndedIsTheEndOfIt) {
  const absl::Status broken = absl::UnavailableError("Socket closed");
  for (const std::string message : {"", "the loss is not finite"}) {
    const absl::Status end = message.empty() ? absl::OkStatus() : absl::InvalidArgumentError(message);
    WorkerProtocol awaiting = In(Phase::kAwaiting);
    awaiting.OnHeartbeat(absl::OkStatus(), /*finished=*/true, message);
    ExpectEnd(awaiting.OnError(broken), end, /*final=*/true, /*leave=*/false);
    WorkerProtocol computing = In(Phase::kComputing);
    computing.OnHeartbeat(absl::OkStatus(), /*finished=*/true, message);
    ExpectEnd(computing.OnBlock(broken, /*own=*/false), end, /*final=*/true, /*leave=*/false);
  }
  // Finished, and its last step not saved yet: a chief that goes away now has a successor, which needs the worker.
  WorkerProtocol unsaved = In(Phase::kAwaiting);
  unsaved.OnHeartbeat(absl::OkStatus(), /*finished=*/true);
  ExpectEnd(unsaved.OnError(broken), broken, /*final=*/false, /*leave=*/false);
  // Its own failure is not hidden by it.
  WorkerProtocol failing = In(Phase::kComputing);
  failing.OnHeartbeat(absl::OkStatus(), /*finished=*/true, "");
  const absl::Status own = absl::InternalError("a file of the input");
  ExpectEnd(failing.OnBlock(own, /*own=*/true), own, /*final=*/true, /*leave=*/false);
}

TEST_F(WorkerProtocolTest, TheFirstStopInterruptsTheStreamAndOthersCancelIt) {
  for (const Phase phase : {Phase::kClosed, Phase::kAwaiting, Phase::kComputing}) {
    WorkerProtocol protocol = In(phase);
    Effects effects = protocol.OnStop();
    EXPECT_TRUE(effects.drop);
    EXPECT_TRUE(effects.interrupt) << "closed, too: a goodbye may be under way";
    EXPECT_FALSE(effects.cancel);
    effects = protocol.OnStop();
    EXPECT_FALSE(effects.interrupt);
    EXPECT_TRUE(effects.cancel);
    EXPECT_EQ(protocol.phase(), phase) << "the loop hears of it from the stream";
    EXPECT_TRUE(protocol.stopping());
  }
}

TEST_F(WorkerProtocolTest, EventsThatAPhaseDoesNotListEndTheProgram) {
  using Event = std::function<void(WorkerProtocol*)>;
  const Event open = [](WorkerProtocol* protocol) { protocol->OnOpen(); };
  const Event token = [](WorkerProtocol* protocol) { protocol->OnToken(); };
  const Event finished = [](WorkerProtocol* protocol) { protocol->OnFinished(""); };
  const Event error = [](WorkerProtocol* protocol) { protocol->OnError(absl::AbortedError("")); };
  const Event block = [](WorkerProtocol* protocol) { protocol->OnBlock(absl::OkStatus(), false); };
  const std::pair<Phase, std::vector<Event>> illegal[] = {
      {Phase::kClosed, {token, finished, error, block}},
      {Phase::kAwaiting, {open, block}},
      {Phase::kComputing, {open, token, finished, error}},
  };
  for (const auto& [phase, events] : illegal) {
    for (const Event& event : events) {
      WorkerProtocol protocol = In(phase);
      EXPECT_DEATH(event(&protocol), "Check failed");
    }
  }
}

}  // namespace
}  // namespace lockstep
