#include "lockstep/server/sync/machine/step_machine.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/transcript.h"
#include "lockstep/server/sync/policy/deterministic.h"
#include "lockstep/server/sync/testing/arrivals_policy.h"

namespace lockstep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using State = StepMachine::State;
using Limiter = StepMachine::Limiter;

constexpr int64_t kGeneration = 5;
constexpr absl::Duration kLease = absl::Seconds(2);

std::string TextOf(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

std::string TextOf(v1::ContributionResult result) {
  return std::string(absl::StripPrefix(v1::ContributionResult_Name(result), "CONTRIBUTION_"));
}

std::string TextOf(State state) {
  static const char* const kNames[] = {"running", "held", "complete", "stopped", "failed", "finished"};
  return kNames[static_cast<int>(state)];
}

// Returns the effects as text, one per line.
std::string TextOf(const StepEffects& effects) {
  std::vector<std::string> lines;
  if (!effects.status.ok()) lines.push_back(absl::StrCat("refuse with ", TextOf(effects.status)));
  if (effects.contributed) {
    lines.push_back(absl::StrCat("contributed ", effects.contributed->token.ToString(), ": ",
                                 TextOf(effects.contributed->result), " after ",
                                 absl::FormatDuration(effects.contributed->took)));
  }
  if (effects.snapshot) lines.push_back("snapshot");
  if (effects.begin) lines.push_back("begin");
  if (effects.give_up) lines.push_back("give up");
  if (effects.complete) lines.push_back("complete");
  for (const RunEvent& event : effects.events) lines.push_back(absl::StrCat("event: ", ToString(event)));
  for (const StepEffects::Close& close : effects.close) {
    lines.push_back(
        absl::StrCat("close ", close.session, close.at_once ? " at once" : "", " with ", TextOf(close.why)));
  }
  if (!effects.wake.empty()) lines.push_back(absl::StrCat("wake ", absl::StrJoin(effects.wake, " ")));
  if (!effects.resume.empty()) lines.push_back(absl::StrCat("resume ", absl::StrJoin(effects.resume, " ")));
  if (!effects.unstage.empty()) lines.push_back(absl::StrCat("unstage ", absl::StrJoin(effects.unstage, " ")));
  if (!effects.failure.ok()) lines.push_back(absl::StrCat("fail with ", TextOf(effects.failure)));
  if (effects.commit) lines.push_back("commit");
  return absl::StrJoin(lines, "\n");
}

// A machine with a lease of 2 s and a snapshot at every second step, and its events in words. N is a session.
//
//   start slots=R [total=100] [step=0] [sums=M] [room] [arrivals=N [places=P]]   makes the machine; `room`: it awaits
//                                  room for snapshots; `arrivals`: with an ArrivalsPolicy that takes tokens of the last
//                                  N steps, and P places for staged contributions
//   crew R [sums=M]                the same at step 1, with workers 1 ... R, each with the token for one slot
//   connect N · disconnect N · heartbeat N... · tick · after 1.5s (time passes)
//   ask N [delay=STEPS]            a frame without a contribution, which asks for a token
//   join N                         connect and ask
//   leave N                        a frame without a contribution, which says goodbye
//   read N · peek N                the next reply, and whether it is sent
//   begin N [resumed]              the first frame with gradients of the contribution to the last token that N read
//   frame N                        a frame without gradients of it
//   push N [completes]             a whole contribution in one frame, wanted and new as the machine says
//   step N                         N reads its token and pushes what completes the step, which is committed
//   sum N RESULT · orphan RESULT   the result of a frame: any of wanted, new, end, completes, input_ended, fails
//   committed [last] · follow STEP · hold STEP (limits; "none": no limit) · end_at STEP · room · take_room
//   stop · finish
//   status N · contributors · boundary · connected N · idle · counters   asks the machine
//
// A state in brackets follows the effects that change it.
class Driver {
 public:
  std::string On(absl::string_view event) {
    words_ = absl::StrSplit(event, ' ');
    CheckWords();
    std::string lines = Act();
    if (machine_ == nullptr) return lines;
    const std::string state =
        absl::StrCat("[", TextOf(machine_->state()), ", step ", machine_->step(), " of ", machine_->total_steps(), "]");
    if (std::exchange(state_, state) == state) return lines;
    return absl::StrCat(lines, lines.empty() ? "" : "\n", state);
  }

  StepMachine* machine() { return machine_.get(); }

 private:
  // Fails the test if a word is misspelled, because it would otherwise be ignored.
  void CheckWords() const;
  std::string Act();
  void Start(int64_t slots);
  std::string Crew();
  StepEffects Connect(uint64_t session) {
    return machine_->OnConnected(session, absl::StrCat("worker-", session), now_);
  }
  StepFrame FrameOf(bool contributes) const;
  std::string Ask(bool leave);
  std::string Read(bool sent);
  std::string Frame(bool gradients);
  std::string Push(bool completes);
  StepMachine::FrameResult Result() const;
  StepEffects SetLimit(Limiter limiter) {
    return machine_->SetLimit(limiter, words_.back() == "none" ? StepMachine::kNoLimit : number(1), now_);
  }
  std::string Status() const;
  std::string Counters() const;

  bool has(absl::string_view word) const { return absl::c_linear_search(words_, word); }
  int64_t number(size_t index) const {
    int64_t value = 0;
    EXPECT_TRUE(index < words_.size() && absl::SimpleAtoi(words_[index], &value)) << "number " << index;
    return value;
  }
  uint64_t session() const { return static_cast<uint64_t>(number(1)); }
  // Returns the value of the word "name=VALUE", or `value` if there is none.
  int64_t option(absl::string_view name, int64_t value) const {
    for (absl::string_view word : words_) {
      if (!absl::ConsumePrefix(&word, name) || !absl::ConsumePrefix(&word, "=")) continue;
      EXPECT_TRUE(absl::SimpleAtoi(word, &value)) << word;
    }
    return value;
  }

  std::vector<std::string> words_;
  std::string state_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<StepMachine> machine_;
  std::map<uint64_t, StepToken> tokens_;  // the last one that each session read
};

void Driver::CheckWords() const {
  static const char* const kWords[] = {"arrivals", "places",    "slots",   "total", "step",  "sums",
                                       "room",     "delay",     "session", "slot",  "count", "generation",
                                       "resumed",  "completes", "wanted",  "new",   "end",   "input_ended",
                                       "fails",    "last",      "none"};
  for (size_t i = 1; i < words_.size(); ++i) {
    const absl::string_view word = absl::string_view(words_[i]).substr(0, words_[i].find('='));
    int64_t number = 0;
    absl::Duration time;
    EXPECT_TRUE(absl::c_linear_search(kWords, word) || absl::SimpleAtoi(word, &number) ||
                absl::ParseDuration(word, &time))
        << "no word is " << word;
  }
}

void Driver::Start(int64_t slots) {
  const int64_t step = option("step", 0);
  StepMachine::Options options;
  options.generation = kGeneration;
  options.total_steps = option("total", 100);
  options.lease = kLease;
  options.snapshot_every_steps = 2;
  options.await_room = has("room");
  options.slots = slots;
  options.max_partial_sums = option("sums", StepMachine::kNoLimit);
  options.max_staged = option("places", StepMachine::kNoLimit);
  DeterministicPolicy::Options policy;
  policy.queue.slots = slots;
  policy.queue.lease = kLease;
  std::unique_ptr<StepPolicy> made = std::make_unique<DeterministicPolicy>(policy, step);
  const int64_t arrivals = option("arrivals", 0);
  if (arrivals > 0) made = std::make_unique<ArrivalsPolicy>(slots, arrivals, step);
  machine_ = std::make_unique<StepMachine>(options, std::move(made), step);
}

std::string Driver::Crew() {
  const int64_t slots = number(1);
  Start(slots);
  for (int64_t slot = 0; slot < slots; ++slot) On(absl::StrCat("join ", slot + 1));
  On("step 1");  // it was alone at first
  for (int64_t slot = 0; slot < slots; ++slot) {
    On(absl::StrCat("read ", slot + 1));
    EXPECT_EQ(tokens_[slot + 1], (StepToken{1, {slot, 1}}));
  }
  state_.clear();
  return "";
}

StepFrame Driver::FrameOf(bool contributes) const {
  StepFrame frame;
  frame.session_id = static_cast<uint64_t>(option("session", number(1)));
  frame.generation = option("generation", kGeneration);
  frame.startup_delay_steps = option("delay", 0);
  const auto token = tokens_.find(session());
  if (!contributes) return frame;
  if (token != tokens_.end()) {
    frame.step = token->second.step;
    frame.block = token->second.block;
  }
  frame.block.first = option("slot", frame.block.first);
  frame.block.count = option("count", frame.block.count);
  return frame;
}

std::string Driver::Ask(bool leave) {
  const auto start = machine_->OnFrame(session(), FrameOf(/*contributes=*/false), now_);
  if (!start.ok()) return absl::StrCat("refuse with ", TextOf(start.status()));
  EXPECT_FALSE(start->begins || start->wanted || start->waits);
  StepMachine::FrameResult result;
  result.end = !leave;
  result.leave = leave;
  return TextOf(machine_->OnSummed(session(), result, now_));
}

std::string Driver::Read(bool sent) {
  const auto reply = machine_->NextReply(session(), now_);
  if (!reply) return "nothing";
  EXPECT_TRUE(reply->takes_values || !reply->token);
  std::vector<std::string> words;
  if (reply->result != v1::CONTRIBUTION_NONE) words.push_back(TextOf(reply->result));
  if (reply->token) words.push_back(reply->token->ToString());
  if (reply->takes_values) words.push_back("takes values");
  if (reply->finished) words.push_back("finished");
  if (sent) machine_->OnReplySent(session(), reply->token ? absl::make_optional(machine_->step()) : absl::nullopt);
  if (sent && reply->token) tokens_[session()] = *reply->token;
  return words.empty() ? "an empty reply" : absl::StrJoin(words, ", ");
}

std::string Driver::Frame(bool gradients) {
  StepFrame frame = FrameOf(/*contributes=*/true);
  if (gradients) frame.gradients.emplace_back();
  const auto start = machine_->OnFrame(session(), frame, now_, has("resumed"));
  if (!start.ok()) return absl::StrCat("refuse with ", TextOf(start.status()));
  return absl::StrCat(start->begins ? "begins, " : "", start->waits ? "waits, " : "",
                      start->wanted ? "wanted" : "unwanted");
}

std::string Driver::Push(bool completes) {
  const auto start = machine_->OnFrame(session(), FrameOf(/*contributes=*/true), now_);
  if (!start.ok()) return absl::StrCat("refuse with ", TextOf(start.status()));
  EXPECT_FALSE(start->waits);
  StepMachine::FrameResult result;
  result.end = true;
  const bool streams = machine_->traits().sums_while_streaming;
  EXPECT_TRUE(start->begins || !streams);
  result.admitted = start->wanted && !streams && machine_->OnStaged(session(), now_).has_value();
  result.wanted = (start->wanted && streams) || result.admitted;
  result.any_new = result.wanted;
  result.summed = completes;
  return TextOf(machine_->OnSummed(session(), result, now_));
}

StepMachine::FrameResult Driver::Result() const {
  StepMachine::FrameResult result;
  result.wanted = has("wanted");
  result.any_new = has("new");
  result.end = has("end");
  result.summed = has("completes");
  result.input_ended = has("input_ended");
  if (has("fails")) result.failure = absl::InvalidArgumentError("the loss is not finite");
  return result;
}

std::string Driver::Status() const {
  v1::WorkerStatus status;
  machine_->FillStatus(session(), now_, &status);
  return absl::StrCat(status.slot_count(), " slots, a lease of ", status.lease_seconds(), " s, silent for ",
                      status.silent_seconds(), " s");
}

std::string Driver::Counters() const {
  v1::RunCounters counters;
  machine_->FillCounters(&counters);
  const bool stages = counters.max_staged_contributions() > 0;
  return absl::StrCat(counters.backup_tokens(), " backups, ", counters.contribution_waits(), " waits, ",
                      counters.contributions_waiting(), " waiting, at most ",
                      stages ? counters.max_staged_contributions() : counters.max_partial_sums(),
                      stages ? " staged" : " sums");
}

std::string Driver::Act() {
  const std::string& event = words_[0];
  const auto yes = [](bool is) { return std::string(is ? "yes" : "no"); };
  if (event == "start") return Start(option("slots", 1)), "";
  if (event == "crew") return Crew();
  if (event == "connect") return TextOf(Connect(session()));
  if (event == "disconnect") return TextOf(machine_->OnDisconnected(session(), now_));
  if (event == "tick") return TextOf(machine_->OnTick(now_));
  if (event == "ask") return Ask(/*leave=*/false);
  if (event == "leave") return Ask(/*leave=*/true);
  if (event == "join") {
    const std::string connected = TextOf(Connect(session()));
    return absl::StrCat(connected, connected.empty() ? "" : "\n", Ask(/*leave=*/false));
  }
  if (event == "read") return Read(/*sent=*/true);
  if (event == "peek") return Read(/*sent=*/false);
  if (event == "begin") return Frame(/*gradients=*/true);
  if (event == "frame") return Frame(/*gradients=*/false);
  if (event == "push") return Push(has("completes"));
  if (event == "step") {
    Read(/*sent=*/true);
    EXPECT_THAT(Push(/*completes=*/true), EndsWith("\ncommit"));
    return TextOf(machine_->OnCommitted(/*last=*/false, now_));
  }
  if (event == "sum") return TextOf(machine_->OnSummed(session(), Result(), now_));
  if (event == "orphan") return TextOf(machine_->OnOrphanSummed(Result(), now_));
  if (event == "committed") return TextOf(machine_->OnCommitted(has("last"), now_));
  if (event == "follow") return TextOf(SetLimit(Limiter::kFollower));
  if (event == "hold") return TextOf(SetLimit(Limiter::kChange));
  if (event == "end_at") return TextOf(machine_->EndAt(number(1), now_));
  if (event == "room") return TextOf(machine_->OnRoomForSnapshot(now_));
  if (event == "take_room") return yes(machine_->TakeRoom());
  if (event == "stop") return TextOf(machine_->Stop());
  if (event == "finish") return TextOf(machine_->Finish());
  if (event == "status") return Status();
  if (event == "counters") return Counters();
  if (event == "contributors") {
    return machine_->contributors().empty() ? "none" : absl::StrJoin(machine_->contributors(), " ");
  }
  if (event == "boundary") return absl::StrCat(machine_->next_boundary());
  if (event == "idle") return yes(machine_->idle());
  if (event == "connected") return yes(machine_->connected(session()));
  if (event == "heartbeat") {
    for (size_t i = 1; i < words_.size(); ++i) machine_->OnHeartbeat(static_cast<uint64_t>(number(i)), now_);
    return "";
  }
  absl::Duration time;
  EXPECT_TRUE(event == "after" && absl::ParseDuration(words_.back(), &time)) << "no event is " << event;
  now_ += time;
  return "";
}

TEST(StepMachineTest, FollowsItsTranscripts) {
  for (const auto& file : std::filesystem::directory_iterator("server/sync/machine/testdata")) {
    PlayTranscript(file.path().string(), [] {
      const auto driver = std::make_shared<Driver>();
      return [driver](absl::string_view event) { return driver->On(event); };
    });
  }
}

TEST(StepMachineTest, EveryEventMovesEveryStateAsTheTableSays) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  Driver driver;
  const auto machine = [&driver] { return driver.machine(); };
  const auto fail = [&] {
    StepMachine::FrameResult result;
    result.failure = absl::InvalidArgumentError("the loss is not finite");
    return !machine()->OnOrphanSummed(result, now).failure.ok();
  };
  const auto enter = [&](State state) {
    driver.On(state == State::kHeld ? "start slots=1 total=3" : "start slots=1 total=1");
    if (state == State::kHeld) {
      machine()->SetLimit(Limiter::kFollower, 0, now);
      EXPECT_TRUE(machine()->running()) << "the step in progress goes on";
      machine()->OnCommitted(/*last=*/false, now);
    }
    if (state == State::kComplete) machine()->OnCommitted(/*last=*/false, now);
    if (state == State::kStopped) machine()->Stop();
    if (state == State::kFailed) fail();
    if (state == State::kFinished) machine()->Finish();
    ASSERT_EQ(machine()->state(), state);
  };
  for (const State state :
       {State::kRunning, State::kHeld, State::kComplete, State::kStopped, State::kFailed, State::kFinished}) {
    const bool open = state == State::kRunning || state == State::kHeld;
    const bool over = state == State::kFailed || state == State::kFinished;
    enter(state);
    EXPECT_EQ(fail(), !over) << "a failure is named once, and not after the end";
    EXPECT_EQ(machine()->state(), over ? state : State::kFailed);
    enter(state);
    machine()->Stop();
    EXPECT_EQ(machine()->state(), open ? State::kStopped : state);
    enter(state);
    StepEffects effects = machine()->SetLimit(Limiter::kFollower, 1, now);
    EXPECT_EQ(effects.begin, state == State::kHeld);
    EXPECT_EQ(machine()->state(), state == State::kHeld ? State::kRunning : state);
    enter(state);
    EXPECT_THAT(driver.On("join 1"), Not(HasSubstr("refuse")));
    effects = machine()->EndAt(machine()->next_boundary(), now);
    EXPECT_EQ(effects.complete, state == State::kHeld) << "a step in progress is committed first";
    EXPECT_EQ(machine()->state(), state == State::kHeld ? State::kComplete : state);
    EXPECT_EQ(machine()->OnDisconnected(1, now).complete, state == State::kRunning) << "unless nobody is at it";
    EXPECT_EQ(machine()->state(), open ? State::kComplete : state);
    enter(state);
    EXPECT_THAT(driver.On("join 1"), Not(HasSubstr("refuse")));
    const int64_t step = machine()->step();
    EXPECT_FALSE(machine()->SetLimit(Limiter::kChange, step - 1, now).give_up);
    EXPECT_EQ(machine()->state(), state);
    EXPECT_EQ(machine()->OnDisconnected(1, now).give_up, state == State::kRunning);
    EXPECT_EQ(machine()->state(), state == State::kRunning ? State::kHeld : state);
    EXPECT_EQ(machine()->step(), step);
    enter(state);
    EXPECT_EQ(machine()->SetLimit(Limiter::kChange, step - 1, now).give_up, state == State::kRunning) << "at once";
    enter(state);
    StepMachine::FrameResult ended;
    ended.wanted = ended.input_ended = true;
    EXPECT_EQ(machine()->OnOrphanSummed(ended, now).complete, state == State::kRunning);
    EXPECT_EQ(machine()->state(), state == State::kRunning ? State::kComplete : state);
    enter(state);
    machine()->Finish();
    EXPECT_EQ(machine()->state(), State::kFinished);
    enter(state);
    StepMachine::FrameResult summed;
    summed.wanted = summed.summed = true;
    EXPECT_EQ(machine()->OnOrphanSummed(summed, now).commit, state == State::kRunning);
  }
}

}  // namespace
}  // namespace lockstep
