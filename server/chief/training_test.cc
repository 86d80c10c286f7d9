#include "lockstep/server/chief/training.h"

#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;

using TrainingTest = ChiefFixture;

// An executor that delays the start of the thread for paced saves until Release.
class HeldSaves : public Executor {
 public:
  void Release() {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.SignalAll();
  }

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    if (name != "paced saves") return Executor::Threads()->Start(std::move(name), std::move(body), priority);
    return Executor::Threads()->Start(std::move(name), [this, body = std::move(body)]() mutable {
      {
        MutexLock lock(&mutex_);
        while (!released_) changed_.Wait(&mutex_);
      }
      body();
    });
  }

  Mutex mutex_;
  CondVar changed_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

// A listener that simulates a chief thread without processor time by blocking the thread's call to it.
class HeldListener : public StepListener {
 public:
  explicit HeldListener(std::shared_ptr<StepListener> to) : to_(std::move(to)) {}

  // Blocks the next call to OnReplyReady.
  void Hold() {
    MutexLock lock(&mutex_);
    state_ = State::kHolds;
  }
  void AwaitHeld() {
    MutexLock lock(&mutex_);
    while (state_ != State::kHeld) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    state_ = State::kOpen;
    changed_.SignalAll();
  }
  void OnReplyReady() override {
    {
      MutexLock lock(&mutex_);
      if (state_ == State::kHolds) {
        state_ = State::kHeld;
        changed_.SignalAll();
        while (state_ == State::kHeld) changed_.Wait(&mutex_);
      }
    }
    to_->OnReplyReady();
  }
  void OnResume() override { to_->OnResume(); }
  void OnClosed(const absl::Status& why, bool at_once) override { to_->OnClosed(why, at_once); }

 private:
  enum class State { kOpen, kHolds, kHeld };

  const std::shared_ptr<StepListener> to_;
  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpen;
};

TEST_F(TrainingTest, WritesTheFirstCheckpointOfAShortRun) {
  HeldSaves saves;
  executor_ = &saves;
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  saves.Release();
  chief_.reset();
  EXPECT_THAT(Events(0), AllOf(Contains("CHECKPOINT 0"), Contains("CHECKPOINT 10")));
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-0.index").value());
}

TEST_F(TrainingTest, SavesByTheClock) {
  write_events_ = false;  // the thread that writes them would be counted
  config_.mutable_checkpoint()->set_every_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  clock_.Advance(absl::Seconds(29));
  chief_->Housekeep();
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-3.index").value());
  clock_.Advance(absl::Seconds(1));
  chief_->Housekeep();
  TrainAndSave(5);  // waits for the checkpoint writer
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-3.index").value() ||
              memory_.Exists("logdir/model.ckpt-5.index").value());
  clock_.Advance(absl::Seconds(30));
  const int64_t before = fs_.operations();
  chief_->Housekeep();
  EXPECT_EQ(fs_.operations(), before) << "step 5 is saved already";
}

TEST_F(TrainingTest, WatchersGetTheCheckpointPeriod) {
  config_.mutable_checkpoint()->set_every_seconds(30);
  for (const bool saves : {true, false}) {
    if (!saves) logdir_.clear();
    ASSERT_TRUE(Restart().ok());
    TrainTo(1);
    v1::WatchRunReply watched;
    chief_->FillWatch(&watched);
    EXPECT_EQ(watched.counters().checkpoint_period_seconds(), saves ? 30 : 0);
  }
}

TEST_F(TrainingTest, StatusShowsTheNewestGradientNorm) {
  ASSERT_TRUE(Start().ok());
  TrainTo(1);
  EXPECT_FALSE(chief_->GetStatus().has_gradient_norm()) << "there are summaries at even steps only";
  TrainTo(3);
  // At step 2 each of the 65,543 trained elements has the gradients 2 and 4.
  EXPECT_NEAR(chief_->GetStatus().gradient_norm(), 3 * std::sqrt(65543.0), 1e-6);
}

TEST_F(TrainingTest, SavesOnRequestAndContinues) {
  ASSERT_TRUE(Start().ok());
  chief_->RequestSave();  // there is nothing to save yet
  chief_->Housekeep();
  TrainTo(3);
  AwaitCheckpoint(0);
  chief_->Housekeep();
  AwaitCheckpoint(3);
  chief_->RequestSave();  // step 3 is already saved
  chief_->Housekeep();
  TrainTo(5);
  chief_->RequestSave();
  chief_->Housekeep();
  AwaitCheckpoint(5);
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
}

TEST_F(TrainingTest, RequestsDuringASaveThatHangsAreOneSave) {
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-3");
  TrainTo(3);
  AwaitCheckpoint(0);
  chief_->RequestSave();
  chief_->Housekeep();
  hanging_.AwaitHanging();
  for (int64_t step = 4; step <= 8; ++step) {
    TrainTo(step);
    for (int i = 0; i < 100; ++i) chief_->RequestSave();
    chief_->Housekeep();
  }
  hanging_.Release();
  AwaitCheckpoint(8);
  for (int64_t step = 4; step <= 7; ++step) EXPECT_FALSE(HasCheckpoint(step)) << step;
  chief_->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
}

TEST_F(TrainingTest, ARequestedSaveDoesNotReplaceTheFirst) {
  HeldSaves saves;
  executor_ = &saves;
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->RequestSave();
  while (!HasCheckpoint(3)) {
    chief_->Housekeep();
    std::this_thread::yield();
  }
  EXPECT_TRUE(HasCheckpoint(0));
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  saves.Release();
  chief_.reset();
}

TEST_F(TrainingTest, ARequestedSaveReplacesNoneThatIsDue) {
  config_.mutable_checkpoint()->set_every_steps(2);
  config_.mutable_checkpoint()->set_keep(0);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  const auto request = [this] {
    chief_->RequestSave();
    chief_->Housekeep();
  };
  request();  // the step is being written
  TrainTo(3);
  request();
  TrainTo(4);
  request();  // step 3 waits
  hanging_.Release();
  for (int64_t step = 5; step <= 10; ++step) {
    TrainTo(step);
    request();
  }
  EXPECT_TRUE(WaitForEnd().ok());
  for (int64_t step = 2; step <= 10; step += 2) EXPECT_TRUE(HasCheckpoint(step)) << step;
  EXPECT_TRUE(HasCheckpoint(3));
}

TEST_F(TrainingTest, SettingTheDateChangesNothing) {
  config_.mutable_checkpoint()->set_every_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  for (const absl::Duration jump : {-absl::Hours(24), absl::Hours(48), absl::Hours(8)}) {
    clock_.SetWallClock(jump);
    chief_->Housekeep();
    EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-3.index").value()) << "no timer has expired";
    ASSERT_TRUE(worker_->token().has_value());
    EXPECT_EQ(chief_->GetStatus().worker(0).slot_count(), 2) << "its lease is still valid";
    clock_.Advance(absl::Seconds(1));
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_session_id(chief_->GetStatus().worker(0).session_id());
    heartbeat.set_generation(chief_->generation());
    EXPECT_TRUE(chief_->sessions()->Heartbeat(heartbeat).ok());
  }
  clock_.Advance(absl::Seconds(27));
  chief_->Housekeep();
  while (chief_->GetStatus().checkpoint() != "logdir/model.ckpt-3") std::this_thread::yield();
}

TEST_F(TrainingTest, EventsHaveStepsOfLateThreads) {
  config_.mutable_summary()->set_every_steps(1);
  ASSERT_TRUE(Start().ok());
  const auto a = Connect(OpenSession("a")->session_id());
  const uint64_t session = OpenSession("b")->session_id();
  std::shared_ptr<HeldListener> listener;
  auto b = std::make_unique<FrameWorker>(session, chief_->generation(), [&](std::shared_ptr<StepListener> to) {
    listener = std::make_shared<HeldListener>(std::move(to));
    return chief_->sessions()->OpenStep(session, chief_->generation(), ValuePath::kStreamed, listener).value();
  });
  FrameWorker* const workers[] = {a.get(), b.get()};
  for (FrameWorker* worker : workers) ASSERT_TRUE(worker->Ask().ok());
  while (chief_->GetStatus().global_step() < 8) {
    for (FrameWorker* worker : workers) {
      worker->Drain();
      if (!worker->token() || worker->token()->step() == 8) continue;
      ASSERT_TRUE(worker->Push().ok());
    }
  }
  for (FrameWorker* worker : workers) worker->Drain();
  ASSERT_TRUE(a->token() && b->token()) << "a slot of step 8 each";
  ASSERT_TRUE(b->Push().ok());
  listener->Hold();
  std::thread late([&] { EXPECT_TRUE(a->Push().ok()); });
  listener->AwaitHeld();  // step 9 is committed
  b->Drain();
  ASSERT_TRUE(b->Push().ok());
  clock_.Advance(absl::Seconds(3));  // the lease of the other worker's slot expires
  chief_->Housekeep();
  b->Drain();
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 10);
  EXPECT_TRUE(chief_->training()->Save().ok());
  // The chief now has to wait only for the thread `late`.
  a->connection()->Close();
  b.reset();
  std::thread scheduler([&] {
    clock_.AwaitWaiters(1);
    listener->Release();
  });
  EXPECT_TRUE(chief_->ends()->Wait().ok());
  scheduler.join();
  late.join();
  EXPECT_THAT(Events(0), AllOf(Contains("loss 9"), Contains("loss 10")));
  EXPECT_EQ(Events(0).back(), "STOP 0");
}

TEST_F(TrainingTest, GoesOnWhenItCannotSeeWhetherItsLogdirIsItsOwn) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(3);
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/generation", absl::InternalError("Input/output error"));
  TrainTo(5);
  EXPECT_TRUE(absl::IsInternal(chief_->training()->Save()));
  fs_.Heal();
  TrainAndSave(6);
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
}

TEST_F(TrainingTest, AnEventFileThatHangsHoldsNobodyUp) {
  ASSERT_TRUE(Start().ok());
  const uint64_t session = OpenSession("worker-0")->session_id();
  worker_ = Connect(session);
  ASSERT_TRUE(worker_->Ask().ok());
  ASSERT_TRUE(chief_->training()->Save().ok());
  hanging_.Hang("events.out");
  TrainTo(4);
  hanging_.AwaitHanging();
  TrainTo(9);
  chief_->Housekeep();
  EXPECT_EQ(chief_->GetStatus().global_step(), 9);
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session);
  heartbeat.set_generation(chief_->generation());
  EXPECT_TRUE(chief_->sessions()->Heartbeat(heartbeat).ok());
  EXPECT_TRUE(OpenSession("worker-0").ok());
  hanging_.Release();
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  const auto events = Events(0);
  for (const char* event : {"START 0", "CHECKPOINT 0", "loss 2", "loss 4", "loss 6", "loss 8", "loss 10"}) {
    EXPECT_THAT(events, ::testing::Contains(event));
  }
  EXPECT_EQ(events.back(), "STOP 0");
}

TEST_F(TrainingTest, AnEventFileThatHangsDelaysAStopByItsLimit) {
  config_.mutable_checkpoint()->set_stop_seconds(1e9);
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  hanging_.Hang("events.out");
  chief_->ends()->RequestStop();
  std::atomic<bool> stopped{false};
  std::thread stop([&] {
    EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
    stopped = true;
  });
  hanging_.AwaitHanging();
  while (chief_->GetStatus().checkpoint() != "logdir/model.ckpt-3") std::this_thread::yield();
  while (!stopped) {
    clock_.Advance(absl::Seconds(1));
    std::this_thread::yield();
  }
  stop.join();
  hanging_.Release();
}

TEST_F(TrainingTest, AHungCheckpointHoldsOnlyLaterSteps) {
  config_.mutable_checkpoint()->set_every_steps(2);
  config_.mutable_checkpoint()->set_keep(0);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  TrainTo(6);  // step 4 waits, and step 6 would replace it
  chief_->Housekeep();
  EXPECT_EQ(chief_->GetStatus().global_step(), 6);
  EXPECT_TRUE(OpenSession("worker-0").ok());
  hanging_.Release();
  TrainTo(10);
  EXPECT_TRUE(WaitForEnd().ok());
  for (int64_t step = 2; step <= 10; step += 2) {
    EXPECT_TRUE(memory_.Exists(absl::StrCat("logdir/model.ckpt-", step, ".index")).value()) << step;
  }
}

TEST_F(TrainingTest, DestructionWritesWaitingStepsFirst) {
  config_.mutable_checkpoint()->set_every_steps(2);
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-2");
  TrainTo(2);
  hanging_.AwaitHanging();
  TrainTo(6);  // step 4 waits for step 2, and step 6 for step 4
  worker_.reset();
  std::thread disk([&] {
    clock_.AwaitWaiters(1);  // the chief's end waits for the disk
    hanging_.Release();
  });
  chief_.reset();
  disk.join();
  for (int64_t step = 2; step <= 6; step += 2) {
    EXPECT_TRUE(memory_.Exists(absl::StrCat("logdir/model.ckpt-", step, ".index")).value()) << step;
  }
}

}  // namespace
}  // namespace lockstep
