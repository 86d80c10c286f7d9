// Runs workers on separate threads, over all value paths, while another thread advances the time and checks the run's
// state. Some workers die in the middle of a contribution. The weights must equal those of a single worker.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/no_failures.h"

namespace lockstep {
namespace {

constexpr int64_t kGeneration = 3;
constexpr int64_t kSteps = 30;

// A signal with which a thread waits for the chief to call its listener.
class Signal {
 public:
  void Set(bool closed) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    set_ = true;
    closed_ = closed_ || closed;
    changed_.SignalAll();
  }
  // Blocks until the next call. Returns false if the chief has closed the stream.
  bool Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!set_) changed_.Wait(&mutex_);
    set_ = false;
    return !closed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class SignallingListener : public StepListener {
 public:
  SignallingListener(std::shared_ptr<StepListener> worker, std::shared_ptr<Signal> signal)
      : worker_(std::move(worker)), signal_(std::move(signal)) {}
  void OnReplyReady() override {
    worker_->OnReplyReady();
    signal_->Set(/*closed=*/false);
  }
  void OnResume() override {
    worker_->OnResume();
    signal_->Set(/*closed=*/false);
  }
  void OnClosed(const absl::Status& why, bool at_once) override {
    worker_->OnClosed(why, at_once);
    signal_->Set(/*closed=*/true);
  }

 private:
  const std::shared_ptr<StepListener> worker_;
  const std::shared_ptr<Signal> signal_;
};

struct Behaviour {
  ValuePath path = ValuePath::kStreamed;
  bool in_parts = false;   // a contribution is three frames
  int64_t dies_every = 0;  // contributions; 0: never
};

class SyncReplicasThreadsTest : public ::testing::Test, protected NoFailures {
 protected:
  void OnCommitted(const CommittedStep& committed) override {
    if (committed.commit.step() == kSteps) done_.Set(/*closed=*/false);
  }
  void OnSnapshot(VariableSnapshot) override { ++snapshots_; }
  void Start(int64_t max_partial_sums) {
    config::v1::OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "momentum { momentum: 0.5 } learning_rate { initial: 0.125 }", &optimizer));
    store_ =
        VariableStore::Create(FrameModel(), optimizer, {}, slots_, /*share_values=*/true, max_partial_sums).value();
    store_->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock_;
    options.machine.generation = kGeneration;
    options.machine.slots = slots_;
    options.machine.total_steps = kSteps;
    options.machine.lease = absl::Seconds(1);
    options.machine.snapshot_every_steps = 7;
    options.events = this;
    sync_ = std::make_unique<SyncReplicas>(std::move(options), std::make_unique<StepShard>(store_.get(), slots_),
                                           FramePolicy(slots_, absl::Seconds(1)));
  }

  // Runs a worker. Returns true if it stopped before the run ended, so that it must be started again.
  bool Live(uint64_t session, const Behaviour& behaviour) {
    const auto signal = std::make_shared<Signal>();
    FrameWorker worker(session, kGeneration, [&](std::shared_ptr<StepListener> listener) {
      return sync_->Connect(session, absl::StrCat("worker-", session), behaviour.path,
                            std::make_shared<SignallingListener>(std::move(listener), signal));
    });
    absl::Status status = worker.Ask();
    for (int64_t contributions = 1; status.ok() && !worker.finished(); ++contributions) {
      while (!worker.token() && !worker.finished()) {
        if (!signal->Await()) return true;
        worker.Drain();
      }
      if (worker.finished()) break;
      status = Contribute(&worker, behaviour, contributions == behaviour.dies_every, signal.get());
      if (contributions == behaviour.dies_every) return true;
    }
    return !worker.finished();
  }

  // Resends a frame until the sums have room for it and it is accepted.
  static absl::Status AwaitTaken(FrameWorker* worker, absl::Status sent, Signal* signal) {
    while (worker->waits()) {
      if (!signal->Await()) return absl::AbortedError("closed");
      worker->Resume();
    }
    return sent;
  }

  static absl::Status Contribute(FrameWorker* worker, const Behaviour& behaviour, bool dies, Signal* signal) {
    if (!behaviour.in_parts && !dies) return AwaitTaken(worker, worker->Push(), signal);
    const v1::Token token = *worker->token();
    StepFrame reports = worker->NewFrame(token), piece = reports, last = reports;
    worker->AddReports(&reports);
    absl::Status status = worker->Send(reports);
    worker->AddPiece(0, 0, 3, &piece);
    if (status.ok()) status = AwaitTaken(worker, worker->Send(piece), signal);
    if (!status.ok() || dies) return status;
    last.end = true;
    worker->AddPiece(2, 0, 65540, &last);
    status = AwaitTaken(worker, worker->Send(last), signal);
    worker->ForgetToken();
    worker->Drain();
    return status;
  }

  // Runs to the last step, and returns the final values.
  std::string Run(const std::vector<Behaviour>& behaviours, int64_t max_partial_sums = 0) {
    Start(max_partial_sums);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < behaviours.size(); ++i) {
      threads.emplace_back([this, i, behaviour = behaviours[i]] {
        while (Live(i + 1, behaviour)) {
        }
      });
    }
    std::atomic<bool> over{false};
    std::thread onlooker([this, &over, workers = behaviours.size()] {
      while (!over) {
        clock_.Advance(absl::Milliseconds(1));
        sync_->Tick();
        for (size_t i = 0; i < workers; i += 2) sync_->Heartbeat(i + 1);
        v1::RunStatus status;
        sync_->FillStatus(&status);
        EXPECT_LE(status.global_step(), kSteps);
        const int64_t saved = sync_->TakeSnapshot().step;
        EXPECT_LE(saved, sync_->step());
        std::this_thread::yield();
      }
    });
    done_.Await();
    sync_->Finish("");
    for (std::thread& thread : threads) thread.join();
    over = true;
    onlooker.join();
    EXPECT_TRUE(sync_->idle());
    EXPECT_EQ(sync_->step(), kSteps);
    EXPECT_EQ(snapshots_, kSteps / 7);
    sync_.reset();
    snapshots_ = 0;
    return std::string(store_->values()->data(), store_->values()->size());
  }

  int64_t slots_ = 4;
  SimulatedClock clock_;
  Signal done_;
  std::atomic<int> snapshots_{0};
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<SyncReplicas> sync_;
};

TEST_F(SyncReplicasThreadsTest, ThreadsDoNotChangeTheWeights) {
  const std::string expected = Run({Behaviour()});
  EXPECT_TRUE(Run({{ValuePath::kStreamed, /*in_parts=*/true, /*dies_every=*/5},
                   {ValuePath::kInProcess, /*in_parts=*/true, 0},
                   {ValuePath::kShared, /*in_parts=*/false, 7},
                   {ValuePath::kStreamed, /*in_parts=*/false, 0},
                   {ValuePath::kShared, /*in_parts=*/true, 0}}) == expected);
}

TEST_F(SyncReplicasThreadsTest, TheWeightsAreTheSameWhenContributionsWait) {
  slots_ = 8;
  const std::string expected = Run({Behaviour()});
  std::vector<Behaviour> workers;
  for (int64_t i = 0; i < slots_; ++i) {
    workers.push_back({ValuePath::kStreamed, /*in_parts=*/i % 2 == 0, /*dies_every=*/i % 3 == 2 ? 5 : 0});
  }
  EXPECT_TRUE(Run(workers, LeastPartialSums(slots_)) == expected);
}

}  // namespace
}  // namespace lockstep
