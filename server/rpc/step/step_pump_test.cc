#include "lockstep/server/rpc/step/step_pump.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Effects = StepPump::Effects;
using Fetched = StepPump::Fetched;
using Next = StepPump::Next;

// Returns the names of the effects, in order.
std::string Text(const Effects& effects) {
  std::vector<std::string> names;
  const auto add = [&names](bool wanted, const char* name) {
    if (wanted) names.push_back(name);
  };
  add(effects.start_timer, "start_timer");
  add(effects.cancel_timer, "cancel_timer");
  add(effects.start_pause, "start_pause");
  add(effects.handle_frame, "handle_frame");
  add(effects.wake, "wake");
  add(effects.fetch_reply, "fetch_reply");
  add(effects.start_write, "start_write");
  add(effects.start_read, "start_read");
  add(effects.close_connection, "close_connection");
  if (effects.finish)
    names.push_back(effects.finish->ok() ? "finish" : absl::StrCat("finish(", effects.finish->message(), ")"));
  add(effects.cancel_call, "cancel_call");
  add(effects.over, "over");
  return absl::StrJoin(names, " ");
}

absl::Status Late() { return absl::DeadlineExceededError("late"); }
absl::Status Stop() { return absl::UnavailableError("stop"); }

// Each returns a pump whose reader is in the named state and whose stream has not ended.
StepPump First() {
  StepPump pump;
  pump.OnStarted();
  return pump;
}
StepPump HandlingFirst() {
  StepPump pump = First();
  pump.OnRead(true);
  pump.OnTimer(false, Late());
  return pump;
}
StepPump Reading() {
  StepPump pump = HandlingFirst();
  pump.OnConnected();
  pump.OnHandled(absl::OkStatus(), Next::kSends);
  return pump;
}
StepPump Handling() {
  StepPump pump = Reading();
  pump.OnRead(true);
  return pump;
}
StepPump Awaiting() {
  StepPump pump = Handling();
  pump.OnHandled(absl::OkStatus(), Next::kAwaits);
  return pump;
}
StepPump Resumed() {
  StepPump pump = Handling();
  pump.OnResume();
  return pump;
}
StepPump Waiting() {
  StepPump pump = Handling();
  pump.OnWaits();
  return pump;
}
StepPump Waking() {
  StepPump pump = Waiting();
  pump.OnResume();
  return pump;
}

// Each returns a pump whose writer is in the named state and whose reader is in kReading.
StepPump Fetching() {
  StepPump pump = Reading();
  pump.OnReplyReady();
  return pump;
}
StepPump Refetching() {
  StepPump pump = Fetching();
  pump.OnReplyReady();
  return pump;
}
StepPump Writing() {
  StepPump pump = Fetching();
  pump.OnFetched(Fetched::kReply);
  return pump;
}

StepPump WritingToken() {
  StepPump pump = Fetching();
  pump.OnFetched(Fetched::kToken);
  return pump;
}

// Returns `pump` after its stream has ended, but before OnFinished.
StepPump Ended(StepPump pump) {
  pump.OnEnd(Stop(), false);
  return pump;
}
StepPump Finished(StepPump pump) {
  pump.OnEnd(Stop(), false);
  pump.OnFinished();
  return pump;
}

TEST(StepPumpReaderTest, StartsWithAReadAndATimer) {
  EXPECT_EQ(Text(StepPump().OnStarted()), "start_timer start_read");
}

TEST(StepPumpReaderTest, DoesNotReadAStreamThatEndedEarly) {
  StepPump pump;
  EXPECT_EQ(Text(pump.OnEnd(Stop(), false)), "finish(stop)");
  EXPECT_EQ(Text(pump.OnStarted()), "");
  EXPECT_EQ(Text(pump.OnFinished()), "over");
}

TEST(StepPumpReaderTest, IsNotOverBeforeItStarted) {
  StepPump pump;
  pump.OnEnd(Stop(), false);
  EXPECT_EQ(Text(pump.OnFinished()), "");
  EXPECT_EQ(Text(pump.OnStarted()), "over");
}

TEST(StepPumpReaderTest, TheFirstFrameStopsTheTimer) {
  StepPump pump = First();
  EXPECT_EQ(Text(pump.OnRead(true)), "cancel_timer handle_frame");
  EXPECT_EQ(Text(pump.OnTimer(false, Late())), "");
}

TEST(StepPumpReaderTest, ReadsTheNextFrameWhenOneIsHandled) {
  StepPump pump = HandlingFirst();
  EXPECT_EQ(Text(pump.OnConnected()), "");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "start_read");
  EXPECT_EQ(Text(pump.OnRead(true)), "handle_frame");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "start_read");
}

TEST(StepPumpReaderTest, ReadsWhenTheAwaitedReplyIsWritten) {
  StepPump pump = Awaiting();
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kNothing)), "");
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kToken)), "start_write start_read");
  EXPECT_EQ(Text(pump.OnWritten(true)), "");
  EXPECT_EQ(Text(pump.OnRead(true)), "handle_frame");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kAwaits)), "") << "the pause is still pending";
  EXPECT_EQ(Text(pump.OnPauseOver()), "start_read");
}

TEST(StepPumpReaderTest, AFrameTellsWhatTheWorkerDoesNext) {
  StepFrame frame;
  EXPECT_EQ(StepPump::NextAfter(frame), Next::kSends);
  frame.end = true;
  EXPECT_EQ(StepPump::NextAfter(frame), Next::kAwaits);
  frame.path = WirePath::kRing;
  EXPECT_EQ(StepPump::NextAfter(frame), Next::kSends);
  frame.leave = true;
  EXPECT_EQ(StepPump::NextAfter(frame), Next::kLeaves);
}

TEST(StepPumpReaderTest, ReadsIfNoReplyIsWrittenForAPause) {
  StepPump pump = Awaiting();
  EXPECT_EQ(Text(pump.OnPauseOver()), "start_read");
  EXPECT_EQ(Text(pump.OnRead(true)), "handle_frame");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kAwaits)), "start_pause");
}

TEST(StepPumpReaderTest, ReadsAtOnceIfAReplyIsOnItsWay) {
  StepPump pump = Handling();
  pump.OnReplyReady();
  EXPECT_EQ(Text(StepPump(pump).OnHandled(absl::OkStatus(), Next::kAwaits)), "start_read");
  pump.OnFetched(Fetched::kToken);
  EXPECT_EQ(Text(StepPump(pump).OnHandled(absl::OkStatus(), Next::kAwaits)), "start_read");
  pump.OnWritten(true);
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kAwaits)), "start_read") << "it has arrived already";
  EXPECT_EQ(Text(pump.OnRead(true)), "handle_frame");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kAwaits)), "start_pause");
}

TEST(StepPumpEndTest, APauseIsWaitedFor) {
  StepPump pump = Awaiting();
  EXPECT_EQ(Text(pump.OnEnd(Stop(), false)), "close_connection finish(stop)");
  EXPECT_EQ(Text(pump.OnFinished()), "") << "no read is pending";
  EXPECT_EQ(Text(pump.OnPauseOver()), "over");
}

TEST(StepPumpReaderTest, TheWorkerEndsTheStream) {
  StepPump first = First();
  EXPECT_EQ(Text(first.OnRead(false)), "cancel_timer finish");
  StepPump later = Reading();
  EXPECT_EQ(Text(later.OnRead(false)), "close_connection finish");
  EXPECT_EQ(Text(later.OnFinished()), "over");
}

TEST(StepPumpReaderTest, AWorkersLastFrameEndsTheStream) {
  StepPump pump = Handling();
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kLeaves)), "close_connection finish");
}

TEST(StepPumpReaderTest, ARefusedFrameEndsTheStream) {
  StepPump unconnected = HandlingFirst();
  EXPECT_EQ(Text(unconnected.OnHandled(Stop(), Next::kSends)), "finish(stop)");
  StepPump pump = Handling();
  EXPECT_EQ(Text(pump.OnHandled(Stop(), Next::kLeaves)), "close_connection finish(stop)");
}

TEST(StepPumpReaderTest, AFrameOfAStreamThatEndsIsNotHandled) {
  StepPump first = Ended(First());
  EXPECT_EQ(Text(first.OnRead(true)), "cancel_timer");
  StepPump later = Ended(Reading());
  EXPECT_EQ(Text(later.OnRead(true)), "");
  EXPECT_EQ(Text(later.OnFinished()), "over");
}

TEST(StepPumpReaderTest, NoFrameIsReadAfterTheEnd) {
  StepPump pump = Ended(Handling());
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "");
  EXPECT_EQ(Text(pump.OnFinished()), "over");
}

TEST(StepPumpReaderTest, AConnectionAfterTheEndIsClosed) {
  StepPump pump = Ended(HandlingFirst());
  EXPECT_EQ(Text(pump.OnConnected()), "close_connection");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "");
}

TEST(StepPumpReaderTest, ReadsNothingWhileAFrameWaits) {
  StepPump pump = Handling();
  EXPECT_EQ(Text(pump.OnWaits()), "");
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply") << "replies go out";
  EXPECT_EQ(Text(pump.OnResume()), "wake");
  EXPECT_EQ(Text(pump.OnResume()), "");
  EXPECT_EQ(Text(pump.OnWoken()), "handle_frame");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "start_read");
  EXPECT_EQ(Text(pump.OnResume()), "");
}

TEST(StepPumpReaderTest, AFrameMayBeResumedBeforeItWaits) {
  StepPump pump = Resumed();
  EXPECT_EQ(Text(pump.OnWaits()), "wake");
  EXPECT_EQ(Text(pump.OnWoken()), "handle_frame");
  EXPECT_EQ(Text(pump.OnWaits()), "") << "it may wait again";
}

TEST(StepPumpEndTest, AFrameThatWaitsIsDropped) {
  StepPump waiting = Waiting();
  EXPECT_EQ(Text(waiting.OnEnd(Stop(), false)), "close_connection finish(stop)");
  EXPECT_EQ(Text(waiting.OnResume()), "");
  EXPECT_EQ(Text(waiting.OnFinished()), "over") << "no read is pending";
  for (StepPump pump : {Ended(Handling()), Ended(Resumed())}) {
    EXPECT_EQ(Text(pump.OnWaits()), "");
    EXPECT_EQ(Text(pump.OnFinished()), "over");
  }
  EXPECT_EQ(Text(Finished(Resumed()).OnWaits()), "over");
}

TEST(StepPumpEndTest, AFrameThatIsBeingWokenIsWaitedFor) {
  StepPump pump = Finished(Waking());
  EXPECT_EQ(Text(pump.OnWoken()), "over");
  StepPump ended = Ended(Waking());
  EXPECT_EQ(Text(ended.OnWoken()), "");
  EXPECT_EQ(Text(ended.OnFinished()), "over");
}

TEST(StepPumpTimerTest, EndsAStreamWithoutAFrame) {
  StepPump pump = First();
  EXPECT_EQ(Text(pump.OnTimer(true, Late())), "finish(late)");
  EXPECT_EQ(Text(pump.OnRead(false)), "") << "the timer is over already";
  EXPECT_EQ(Text(pump.OnFinished()), "over");
}

TEST(StepPumpTimerTest, DoesNothingIfItExpiresAfterTheFrame) {
  StepPump pump = First();
  pump.OnRead(true);
  EXPECT_EQ(Text(pump.OnTimer(true, Late())), "");
  EXPECT_EQ(Text(pump.OnHandled(absl::OkStatus(), Next::kSends)), "start_read");
}

TEST(StepPumpTimerTest, IsWaitedFor) {
  StepPump pump = First();
  pump.OnRead(false);
  EXPECT_EQ(Text(pump.OnFinished()), "");
  EXPECT_EQ(Text(pump.OnTimer(false, Late())), "over");
}

TEST(StepPumpWriterTest, IgnoresRepliesBeforeTheConnection) {
  StepPump pump = HandlingFirst();
  EXPECT_EQ(Text(pump.OnReplyReady()), "");
  pump.OnConnected();
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
}

TEST(StepPumpWriterTest, WritesRepliesUntilThereAreNoMore) {
  StepPump pump = Reading();
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kReply)), "start_write");
  EXPECT_EQ(Text(pump.OnReplyReady()), "") << "the next fetch will find it";
  EXPECT_EQ(Text(pump.OnWritten(true)), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kReply)), "start_write");
  EXPECT_EQ(Text(pump.OnWritten(true)), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kNothing)), "");
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
}

TEST(StepPumpWriterTest, RestsAfterAToken) {
  StepPump pump = Fetching();
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kToken)), "start_write");
  EXPECT_EQ(Text(pump.OnWritten(true)), "");
  EXPECT_EQ(Text(pump.OnReplyReady()), "fetch_reply");
}

TEST(StepPumpWriterTest, FetchesAfterATokenIfAReplyIsReady) {
  StepPump refetching = Refetching();
  EXPECT_EQ(Text(refetching.OnFetched(Fetched::kToken)), "start_write");
  EXPECT_EQ(Text(refetching.OnWritten(true)), "fetch_reply");
  StepPump writing = WritingToken();
  EXPECT_EQ(Text(writing.OnReplyReady()), "");
  EXPECT_EQ(Text(writing.OnWritten(true)), "fetch_reply");
}

TEST(StepPumpWriterTest, FetchesAgainIfAReplyBecameReady) {
  StepPump pump = Fetching();
  EXPECT_EQ(Text(pump.OnReplyReady()), "");
  EXPECT_EQ(Text(pump.OnReplyReady()), "");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kNothing)), "fetch_reply");
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kNothing)), "");
}

TEST(StepPumpWriterTest, OneWriteAtATimeThoughARefetchIsDue) {
  StepPump pump = Refetching();
  EXPECT_EQ(Text(pump.OnFetched(Fetched::kReply)), "start_write");
  EXPECT_EQ(Text(pump.OnReplyReady()), "");
  EXPECT_EQ(Text(pump.OnWritten(true)), "fetch_reply");
}

TEST(StepPumpWriterTest, RestsWhenAWriteFails) {
  for (StepPump pump : {Writing(), WritingToken()}) {
    EXPECT_EQ(Text(pump.OnWritten(false)), "");
    EXPECT_EQ(Text(pump.OnRead(false)), "close_connection finish");
  }
}

TEST(StepPumpEndTest, WaitsForTheReplyThatIsBeingFetched) {
  for (StepPump pump : {Fetching(), Refetching()}) {
    for (const auto fetched : {Fetched::kNothing, Fetched::kReply, Fetched::kToken}) {
      StepPump ended = pump;
      EXPECT_EQ(Text(ended.OnEnd(Stop(), false)), "close_connection");
      EXPECT_EQ(Text(ended.OnReplyReady()), "");
      EXPECT_EQ(Text(ended.OnFetched(fetched)), "finish(stop)");
    }
  }
}

TEST(StepPumpEndTest, WaitsForTheReplyThatIsBeingWritten) {
  for (const bool ok : {false, true}) {
    for (StepPump pump : {Writing(), WritingToken()}) {
      EXPECT_EQ(Text(pump.OnEnd(Stop(), false)), "start_timer close_connection");
      EXPECT_EQ(Text(pump.OnWritten(ok)), "cancel_timer finish(stop)");
      EXPECT_EQ(Text(pump.OnTimer(false, Late())), "");
    }
  }
}

TEST(StepPumpEndTest, CancelsAWriteThatOutlastsTheTimer) {
  StepPump ended = Writing();
  EXPECT_EQ(Text(ended.OnEnd(Stop(), false)), "start_timer close_connection");
  StepPump left = Writing();
  EXPECT_EQ(Text(left.OnRead(true)), "handle_frame");
  EXPECT_EQ(Text(left.OnHandled(absl::OkStatus(), Next::kLeaves)), "start_timer close_connection");
  StepPump refused = Writing();
  refused.OnRead(true);
  EXPECT_EQ(Text(refused.OnHandled(Stop(), Next::kSends)), "start_timer close_connection");
  StepPump half_closed = Writing();
  EXPECT_EQ(Text(half_closed.OnRead(false)), "start_timer close_connection");
  for (StepPump pump : {ended, left, refused, half_closed}) {
    EXPECT_EQ(Text(pump.OnTimer(true, Late())), "cancel_call");
    EXPECT_EQ(Text(pump.OnWritten(false)).substr(0, 6), "finish");
  }
}

TEST(StepPumpEndTest, TheWriteTimerFollowsTheFrameTimer) {
  StepPump pump = First();
  pump.OnRead(true);  // cancels the timer, whose event is still pending
  pump.OnConnected();
  pump.OnReplyReady();
  pump.OnFetched(Fetched::kToken);
  EXPECT_EQ(Text(pump.OnEnd(Stop(), false)), "close_connection");
  EXPECT_EQ(Text(pump.OnTimer(false, Late())), "start_timer");
  EXPECT_EQ(Text(pump.OnTimer(true, Late())), "cancel_call");
}

TEST(StepPumpEndTest, IsOverWhenTheTimerOfAWriteHasEnded) {
  StepPump pump = Ended(Writing());
  EXPECT_EQ(Text(pump.OnRead(false)), "");
  EXPECT_EQ(Text(pump.OnWritten(true)), "cancel_timer finish(stop)");
  EXPECT_EQ(Text(pump.OnFinished()), "");
  EXPECT_EQ(Text(pump.OnTimer(true, Late())), "over") << "it expired just before it was cancelled";
}

TEST(StepPumpEndTest, CancelsImmediatelyOnlyAPendingWrite) {
  EXPECT_EQ(Text(Reading().OnEnd(Stop(), true)), "close_connection finish(stop)");
  EXPECT_EQ(Text(Fetching().OnEnd(Stop(), true)), "close_connection");
  StepPump ended = Ended(Writing());
  EXPECT_EQ(Text(ended.OnEnd(Late(), true)), "cancel_call") << "it waits no longer";
  EXPECT_EQ(Text(ended.OnWritten(false)), "cancel_timer finish(stop)");
}

TEST(StepPumpEndTest, CancelsTheCallThatDoesNotTakeAReply) {
  StepPump pump = Writing();
  EXPECT_EQ(Text(pump.OnEnd(Stop(), true)), "start_timer close_connection cancel_call");
  EXPECT_EQ(Text(pump.OnWritten(false)), "cancel_timer finish(stop)");
}

TEST(StepPumpEndTest, TheFirstEndCounts) {
  StepPump pump = Reading();
  EXPECT_EQ(Text(pump.OnEnd(Stop(), false)), "close_connection finish(stop)");
  EXPECT_EQ(Text(pump.OnEnd(Late(), false)), "");
  EXPECT_EQ(Text(pump.OnEnd(Late(), true)), "cancel_call") << "a finish that is not taken is cancelled, too";
  EXPECT_EQ(Text(pump.OnRead(false)), "");
  EXPECT_EQ(Text(pump.OnFinished()), "over");
}

TEST(StepPumpEndTest, IsOverOnceEveryOperationHasEnded) {
  StepPump reading = Finished(Reading());
  EXPECT_EQ(Text(reading.OnRead(false)), "over");
  StepPump handling = Finished(Handling());
  EXPECT_EQ(Text(handling.OnHandled(Stop(), Next::kSends)), "over");
  StepPump first = Finished(First());
  EXPECT_EQ(Text(first.OnRead(false)), "cancel_timer");
  EXPECT_EQ(Text(first.OnTimer(false, Late())), "over");
}

TEST(StepPumpEndTest, NothingHappensAfterIt) {
  StepPump pump = Finished(Reading());
  pump.OnRead(false);
  EXPECT_EQ(Text(pump.OnReplyReady()), "");
  EXPECT_EQ(Text(pump.OnEnd(Late(), true)), "");
}

// An event, and the states in which it may occur.
struct Event {
  std::string name;
  std::function<void(StepPump*)> happen;
  std::vector<std::string> legal;
};

TEST(StepPumpDeathTest, RefusesEveryEventThatCannotCome) {
  const std::vector<std::pair<std::string, StepPump>> states = {
      {"new", StepPump()},
      {"first", First()},
      {"handling first", HandlingFirst()},
      {"reading", Reading()},
      {"handling", Handling()},
      {"resumed", Resumed()},
      {"awaiting", Awaiting()},
      {"waiting", Waiting()},
      {"waking", Waking()},
      {"fetching", Fetching()},
      {"refetching", Refetching()},
      {"writing", Writing()},
      {"writing a token", WritingToken()},
      {"finishing", Ended(Reading())},
      {"finished", Finished(Reading())},
  };
  const std::vector<std::string> reads = {"first",   "reading",         "fetching",  "refetching",
                                          "writing", "writing a token", "finishing", "finished"};
  const std::vector<Event> events = {
      {"OnStarted", [](StepPump* pump) { pump->OnStarted(); }, {"new"}},
      {"OnRead(true)", [](StepPump* pump) { pump->OnRead(true); }, reads},
      {"OnRead(false)", [](StepPump* pump) { pump->OnRead(false); }, reads},
      {"OnConnected", [](StepPump* pump) { pump->OnConnected(); }, {"handling first"}},
      {"OnHandled", [](StepPump* pump) { pump->OnHandled(Stop(), Next::kSends); }, {"handling first", "handling"}},
      {"OnPauseOver", [](StepPump* pump) { pump->OnPauseOver(); }, {"awaiting"}},
      {"OnWaits", [](StepPump* pump) { pump->OnWaits(); }, {"handling first", "handling", "resumed"}},
      {"OnWoken", [](StepPump* pump) { pump->OnWoken(); }, {"waking"}},
      {"OnTimer", [](StepPump* pump) { pump->OnTimer(true, Late()); }, {"first"}},
      {"OnFetched(kNothing)", [](StepPump* pump) { pump->OnFetched(Fetched::kNothing); }, {"fetching", "refetching"}},
      {"OnFetched(kReply)", [](StepPump* pump) { pump->OnFetched(Fetched::kReply); }, {"fetching", "refetching"}},
      {"OnFetched(kToken)", [](StepPump* pump) { pump->OnFetched(Fetched::kToken); }, {"fetching", "refetching"}},
      {"OnWritten", [](StepPump* pump) { pump->OnWritten(true); }, {"writing", "writing a token"}},
      {"OnFinished", [](StepPump* pump) { pump->OnFinished(); }, {"finishing"}},
  };
  for (const auto& state : states) {
    for (const Event& event : events) {
      SCOPED_TRACE(event.name + " while " + state.first);
      StepPump pump = state.second;
      if (std::find(event.legal.begin(), event.legal.end(), state.first) != event.legal.end()) {
        event.happen(&pump);
      } else {
        EXPECT_DEATH(event.happen(&pump), "Check failed");
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
