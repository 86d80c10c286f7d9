#include "lockstep/server/sync/policy/first_arrivals.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/server/sync/machine/step_machine.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kLease = absl::Seconds(5);
constexpr int64_t kStep = 100;

// A model of TensorFlow's SyncReplicasOptimizer: the local step of each worker, which its gradients carry, and the
// queue of tokens. For random scripts, it behaves exactly like TensorFlow 2.21 running in one process.
class Original {
 public:
  Original(int64_t replicas, int64_t total, int64_t initial)
      : replicas_(replicas), total_(total), queue_(static_cast<size_t>(initial), kStep) {}

  void Join(uint64_t worker) { local_[worker] = step_; }
  void Push(uint64_t worker) {
    if (local_[worker] == step_ && taken_ < replicas_) ++taken_;
    blocked_.push_back(worker);
    Serve();
    if (taken_ < replicas_) return;
    ++step_;
    taken_ = 0;
    queue_.insert(queue_.end(), static_cast<size_t>(std::max(replicas_, total_)), step_);
    Serve();
  }
  int64_t step() const { return step_; }
  int64_t tokens() const { return static_cast<int64_t>(queue_.size()); }
  bool blocks(uint64_t worker) const { return std::count(blocked_.begin(), blocked_.end(), worker) > 0; }
  int64_t local(uint64_t worker) const { return local_.at(worker); }

 private:
  void Serve() {
    for (; !blocked_.empty() && !queue_.empty(); blocked_.pop_front(), queue_.pop_front()) {
      local_[blocked_.front()] = queue_.front();
    }
  }

  const int64_t replicas_, total_;
  int64_t step_ = kStep, taken_ = 0;
  std::deque<int64_t> queue_;
  std::deque<uint64_t> blocked_;
  std::map<uint64_t, int64_t> local_;
};

// A machine with the policy, and workers that read their tokens as soon as they can.
class FirstArrivalsTest : public ::testing::Test {
 protected:
  void Start(int64_t replicas, int64_t total, int64_t initial, std::vector<int64_t> positions = {}) {
    FirstArrivalsPolicy::Options options;
    options.replicas_to_aggregate = replicas;
    options.total_replicas = total;
    options.initial_tokens = initial;
    options.lease = kLease;
    auto policy = std::make_unique<FirstArrivalsPolicy>(options, kStep, std::move(positions));
    policy_ = policy.get();
    slots_ = replicas;
    StepMachine::Options machine;
    machine.generation = 1;
    machine.slots = replicas;
    machine.total_steps = kStep + 1000;
    machine.lease = kLease;
    machine_ = std::make_unique<StepMachine>(machine, std::move(policy), kStep);
    tokens_.clear();
  }
  StepFrame FrameOf(uint64_t worker) const {
    StepFrame frame;
    frame.session_id = worker;
    frame.generation = 1;
    frame.end = true;
    return frame;
  }
  void Take(const StepEffects& effects) {
    ASSERT_TRUE(effects.status.ok()) << effects.status;
    if (effects.commit) Take(machine_->OnCommitted(/*last=*/false, now_));
    for (const uint64_t worker : effects.wake) {
      const auto reply = machine_->NextReply(worker, now_);
      if (!reply || !reply->token) continue;
      machine_->OnReplySent(worker, machine_->step());
      tokens_[worker] = *reply->token;
    }
  }
  void Join(uint64_t worker) {
    machine_->OnConnected(worker, absl::StrCat("worker-", worker), now_);
    ASSERT_TRUE(machine_->OnFrame(worker, FrameOf(worker), now_).ok());
    StepMachine::FrameResult asked;
    asked.end = true;
    Take(machine_->OnSummed(worker, asked, now_));
  }
  // Sends the worker's contribution. Returns true if it counts.
  bool Push(uint64_t worker) {
    StepFrame frame = FrameOf(worker);
    frame.step = tokens_.at(worker).step;
    frame.block = tokens_.at(worker).block;
    tokens_.erase(worker);
    const auto start = machine_->OnFrame(worker, frame, now_);
    EXPECT_TRUE(start.ok()) << start.status();
    StepMachine::FrameResult result;
    result.end = true;
    const auto place = start->wanted ? machine_->OnStaged(worker, now_) : absl::nullopt;
    result.admitted = result.wanted = result.any_new = place.has_value();
    result.summed = place && *place + 1 == slots_;
    Take(machine_->OnSummed(worker, result, now_));
    return place.has_value();
  }
  // Reports that the input has no batch for the worker's token.
  StepEffects EndInput(uint64_t worker) {
    StepFrame frame = FrameOf(worker);
    frame.step = tokens_.at(worker).step;
    frame.block = tokens_.at(worker).block;
    frame.end_of_input = true;
    tokens_.erase(worker);
    EXPECT_TRUE(machine_->OnFrame(worker, frame, now_).ok());
    StepMachine::FrameResult result;
    result.end = result.input_ended = true;
    StepEffects effects = machine_->OnSummed(worker, result, now_);
    Take(effects);
    return effects;
  }
  bool blocks(uint64_t worker) const { return tokens_.count(worker) == 0; }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int64_t slots_ = 1;
  FirstArrivalsPolicy* policy_ = nullptr;
  std::unique_ptr<StepMachine> machine_;
  std::map<uint64_t, StepToken> tokens_;  // held by workers
};

TEST_F(FirstArrivalsTest, TwoWorkersWasteOneBatchEach) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/2);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_TRUE(Push(1) && Push(2));
  EXPECT_EQ(machine_->step(), kStep + 1);
  EXPECT_EQ(tokens_.at(1).step, kStep) << "an initial token";
  EXPECT_FALSE(Push(1) || Push(2)) << "stale";
  EXPECT_EQ(machine_->step(), kStep + 1);
  EXPECT_EQ(tokens_.at(1).step, kStep + 1);
  EXPECT_TRUE(Push(1) && Push(2));
  EXPECT_EQ(machine_->step(), kStep + 2);
}

TEST_F(FirstArrivalsTest, TheLastOfThreeIsABackup) {
  Start(/*replicas=*/2, /*total=*/3, /*initial=*/3);
  for (const uint64_t worker : {0, 1, 2}) Join(worker);
  EXPECT_TRUE(Push(0) && Push(2));
  EXPECT_EQ(machine_->step(), kStep + 1);
  EXPECT_FALSE(Push(1)) << "its token is of the step before";
  EXPECT_FALSE(Push(0) || Push(1) || Push(2)) << "initial tokens";
  EXPECT_TRUE(Push(0));
  EXPECT_TRUE(blocks(0)) << "it waits for the update";
  EXPECT_TRUE(Push(1));
  EXPECT_EQ(machine_->step(), kStep + 2);
  EXPECT_FALSE(blocks(0));
}

TEST_F(FirstArrivalsTest, AReturnedTokenCarriesThePresentStep) {
  Start(/*replicas=*/1, /*total=*/1, /*initial=*/1);
  Join(1);
  EXPECT_TRUE(Push(1));
  EXPECT_EQ(tokens_.at(1).step, kStep);
  Take(machine_->OnDisconnected(1, now_));
  Join(2);
  EXPECT_TRUE(Push(2)) << "the first batch of a worker takes no token";
  EXPECT_EQ(tokens_.at(2).step, kStep + 1);
}

TEST_F(FirstArrivalsTest, RandomScriptsEndAsInTheOriginal) {
  const Philox random(1, StableHash("scripts"));
  uint64_t draws = 0;
  const auto draw = [&](int64_t below) { return static_cast<int64_t>(random.At(draws++)[0] % below); };
  for (int script = 0; script < 300; ++script) {
    const int64_t workers = 2 + draw(3), replicas = 1 + draw(4), total = 1 + draw(4);
    const int64_t initial =
        std::vector<int64_t>{replicas, std::max<int64_t>(0, replicas - total), replicas + 1}[draw(3)];
    Start(replicas, total, initial);
    Original original(replicas, total, initial);
    uint64_t joined = 0;
    for (int action = 0; action < 40; ++action) {
      std::vector<uint64_t> free;
      for (uint64_t worker = 0; worker < joined; ++worker) {
        if (!original.blocks(worker)) free.push_back(worker);
      }
      if (static_cast<int64_t>(joined) < workers && (free.empty() || draw(4) == 0)) {
        Join(joined);
        original.Join(joined++);
      } else if (free.empty()) {
        break;  // in TensorFlow, all of them wait forever
      } else {
        const uint64_t worker = free[static_cast<size_t>(draw(static_cast<int64_t>(free.size())))];
        Push(worker);
        original.Push(worker);
      }
      ASSERT_EQ(machine_->step(), original.step()) << "script " << script << ", action " << action;
      ASSERT_EQ(policy_->num_tokens(), original.tokens()) << "script " << script << ", action " << action;
      for (uint64_t worker = 0; worker < joined; ++worker) {
        ASSERT_EQ(blocks(worker), original.blocks(worker)) << "script " << script << ", action " << action;
        if (blocks(worker)) continue;
        ASSERT_EQ(tokens_.at(worker).step, original.local(worker)) << "script " << script << ", action " << action;
      }
    }
  }
}

TEST_F(FirstArrivalsTest, TheTokenOfAWorkerThatIsGoneReturns) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/0);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_TRUE(Push(1) && Push(2));
  EXPECT_EQ(policy_->num_tokens(), 0);
  EXPECT_TRUE(Push(1));
  EXPECT_TRUE(blocks(1));
  Take(machine_->OnDisconnected(2, now_));  // in TensorFlow, worker 1 now waits forever
  ASSERT_FALSE(blocks(1));
  EXPECT_EQ(tokens_.at(1).step, kStep + 1);
  EXPECT_TRUE(Push(1));
  EXPECT_EQ(machine_->step(), kStep + 2);
}

TEST_F(FirstArrivalsTest, TheTokenOfASilentWorkerReturns) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/0);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_TRUE(Push(1) && Push(2));
  EXPECT_TRUE(Push(1));
  const StepToken late = tokens_.at(2);
  now_ += kLease;
  Take(machine_->OnTick(now_));
  ASSERT_FALSE(blocks(1));
  Push(1);
  EXPECT_EQ(machine_->step(), kStep + 2);
  tokens_[2] = late;
  EXPECT_FALSE(Push(2)) << "it wakes up too late";
}

TEST_F(FirstArrivalsTest, WorkersThatAllWaitGetATokenAtLast) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/0);
  Join(1);
  EXPECT_TRUE(Push(1));
  EXPECT_TRUE(blocks(1));
  Take(machine_->OnTick(now_));
  now_ += kLease - absl::Seconds(1);
  Take(machine_->OnTick(now_));
  EXPECT_TRUE(blocks(1));
  now_ += absl::Seconds(1);
  Take(machine_->OnTick(now_));
  EXPECT_FALSE(blocks(1));
  EXPECT_TRUE(Push(1));
  EXPECT_EQ(machine_->step(), kStep + 1);
}

TEST_F(FirstArrivalsTest, EveryBatchOfAStreamIsTakenOnce) {
  Start(/*replicas=*/1, /*total=*/2, /*initial=*/1, /*positions=*/{3, 8});
  Join(1);
  EXPECT_EQ(tokens_.at(1).batch->position, 3);
  EXPECT_TRUE(Push(1));
  EXPECT_FALSE(Push(1)) << "stale, and spent";
  EXPECT_EQ(tokens_.at(1).batch->position, 5);
  Take(machine_->OnDisconnected(1, now_));
  Join(2);
  EXPECT_EQ(tokens_.at(2).batch->stream, 0);
  EXPECT_EQ(tokens_.at(2).batch->position, 5) << "it was not contributed";
}

TEST_F(FirstArrivalsTest, ASilentWorkerSpendsNoBatchOfAnother) {
  Start(/*replicas=*/1, /*total=*/2, /*initial=*/0);
  for (const uint64_t worker : {1, 2}) Join(worker);
  const StepToken late = tokens_.at(1);
  now_ += kLease - absl::Seconds(1);
  machine_->OnHeartbeat(2, now_);
  now_ += absl::Seconds(1);
  Take(machine_->OnTick(now_));
  EXPECT_TRUE(Push(2));  // the step of the silent worker's token is over
  Take(machine_->OnDisconnected(2, now_));
  Join(3);
  EXPECT_EQ(tokens_.at(3).batch->stream, 0) << "it takes over the stream of the silent worker";
  tokens_[1] = late;
  EXPECT_FALSE(Push(1)) << "stale";
  EXPECT_TRUE(Push(3)) << "its batch is not spent";
}

TEST_F(FirstArrivalsTest, TheRunEndsWithTheLastStream) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/2);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_FALSE(EndInput(1).complete);
  EXPECT_TRUE(blocks(1));
  EXPECT_TRUE(Push(2));
  EXPECT_TRUE(EndInput(2).complete);
}

TEST_F(FirstArrivalsTest, ACheckpointHasThePositionsOfItsStep) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/2);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_TRUE(Push(1));
  EXPECT_THAT(policy_->stream_positions(), IsEmpty()) << "the values do not have it yet";
  EXPECT_TRUE(Push(2));
  EXPECT_THAT(policy_->stream_positions(), ElementsAre(1, 1));
}

TEST_F(FirstArrivalsTest, AStepThatIsGivenUpTakesItsBatchesAgain) {
  Start(/*replicas=*/2, /*total=*/2, /*initial=*/2);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_TRUE(Push(1));
  for (const uint64_t worker : {1, 2}) Take(machine_->OnDisconnected(worker, now_));
  EXPECT_TRUE(machine_->SetLimit(StepMachine::Limiter::kChange, kStep - 1, now_).give_up);
  Take(machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_));
  Join(3);
  EXPECT_EQ(tokens_.at(3).batch->position, 0);
  EXPECT_TRUE(Push(3));
  EXPECT_EQ(machine_->step(), kStep) << "the first one was thrown away";
}

}  // namespace
}  // namespace lockstep
