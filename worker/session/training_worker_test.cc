#include "lockstep/worker/session/training_worker.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/session/testing/tiny_workload.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// A clock on which every wait ends immediately and advances the time to its deadline.
class AutoAdvancingClock : public Clock {
 public:
  absl::Time Now() override {
    MutexLock lock(&mutex_);
    return now_;
  }
  absl::Time WallTime() override { return Now(); }
  bool WaitUntil(CondVar*, Mutex*, absl::Time deadline) override {
    MutexLock lock(&mutex_);
    now_ = std::max(now_, deadline);
    return true;
  }

 private:
  Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1000);
};

class TrainingWorkerTest : public ::testing::Test {
 protected:
  TrainingWorker::Options NewOptions() {
    TrainingWorker::Options options;
    options.name = "worker-0@here";
    options.clock = &clock_;
    options.chief_address = "grpc://chief:2222";
    options.max_wait = absl::Seconds(10);
    options.make_workload = [this](const config::v1::RunSpec& config) -> absl::StatusOr<Workload> {
      ++workloads_made_;
      batch_size_ = config.input().batch_size();
      if (!workload_status_.ok()) return workload_status_;
      return TinyWorkload(on_slot_, on_backward_, input_end_);
    };
    return options;
  }
  // Runs the worker to the end. With `step`, the clock advances by that much whenever a thread waits for it and at no
  // other time. Thus, the worker does not consider the chief absent just because the system did not schedule the
  // worker.
  absl::Status Run(absl::Duration step = absl::ZeroDuration()) {
    TrainingWorker::Options options = NewOptions();
    if (step > absl::ZeroDuration()) options.max_wait = chief_wait_;  // time runs fast here
    worker_ = std::make_unique<TrainingWorker>(options, &client_);
    if (step == absl::ZeroDuration()) return worker_->Run();
    absl::Status status;
    std::atomic<bool> ended{false};
    std::thread runner([&] {
      status = worker_->Run();
      ended = true;
    });
    while (!ended) {
      if (clock_.waiters() > 0) clock_.Advance(step);
      std::this_thread::yield();
    }
    runner.join();
    return status;
  }

  SimulatedClock clock_;
  FakeChiefClient client_;
  std::unique_ptr<TrainingWorker> worker_;
  std::function<void()> on_slot_, on_backward_;
  absl::Status workload_status_;
  int64_t input_end_ = 1000;
  absl::Duration chief_wait_ = absl::InfiniteDuration();
  int workloads_made_ = 0;
  int64_t batch_size_ = 0;  // of the last workload
};

TEST_F(TrainingWorkerTest, ComputesWithTheSettingsOfItsTokens) {
  client_.config.mutable_input()->set_batch_size(3);
  std::deque<FakeChiefClient::Event> events;
  for (int64_t step = 0; step < 5; ++step) {
    events.push_back(FakeChiefClient::Gives(step, 0, 1));
    events.back().assignment.token.set_digest(true);
  }
  events[1].assignment.settings.emplace().set_batch_size(3);
  events[1].assignment.settings->mutable_clip()->set_by_value(0.5f);
  events[3].assignment.settings.emplace().set_batch_size(4);
  events.push_back(FakeChiefClient::Finishes());
  client_.streams = {events};
  EXPECT_TRUE(Run().ok());
  const auto digests = client_.calls().digests;
  ASSERT_EQ(digests.size(), 5u);
  EXPECT_NE(digests[1], digests[0]) << "clipped";
  EXPECT_EQ(digests[2], digests[1]) << "until the next change";
  EXPECT_EQ(digests[3], digests[0]);
  EXPECT_EQ(digests[4], digests[0]);
  EXPECT_EQ(workloads_made_, 2) << "a clip needs no other";
  EXPECT_EQ(batch_size_, 4);
}

TEST_F(TrainingWorkerTest, ComputesItsBlocksUntilTheRunIsOver) {
  client_.streams = {{FakeChiefClient::Gives(3, 0, 2), FakeChiefClient::Gives(4, 2, 1), FakeChiefClient::Finishes()}};
  client_.config.mutable_training()->set_startup_delay_steps(5);
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(worker_->slots_computed(), 3);
  const auto calls = client_.calls();
  EXPECT_EQ(calls.reports, 3);
  EXPECT_EQ(calls.gradients, 2) << "one sum for each block";
  EXPECT_EQ(calls.leaves, 1);
  ASSERT_EQ(calls.open_session.size(), 1u);
  EXPECT_EQ(calls.open_session[0].worker(), "worker-0@here");
  EXPECT_EQ(calls.open_session[0].model().variables(0).name(), "w");
  EXPECT_EQ(calls.streams[0].startup_delay_steps, 5);
  EXPECT_EQ(calls.streams[0].session_id, 1u);
}

// An observer that gives the first block back.
class BusyObserver : public BlockObserver {
 public:
  void OnSession(bool) override { ++sessions; }
  Decision BeforeBlock(const v1::Token&, BlockAdditions*) override {
    return ++blocks == 1 ? Decision::kGiveBack : Decision::kCompute;
  }
  bool AwaitDemand() override {
    ++demands;
    return true;
  }
  void AfterBlock(const v1::Token&, double) override {}
  void OnBlockLost() override { ++lost; }
  void OnResult(v1::ContributionResult) override {}
  void OnRunOver() override {}

  int sessions = 0, blocks = 0, demands = 0, lost = 0;
};

TEST_F(TrainingWorkerTest, ABlockIsGivenBackAndTheSessionStays) {
  client_.streams = {{FakeChiefClient::Gives(3, 0, 2)}, {FakeChiefClient::Gives(7, 0, 2), FakeChiefClient::Finishes()}};
  BusyObserver observer;
  TrainingWorker::Options options = NewOptions();
  options.observer = &observer;
  TrainingWorker worker(options, &client_);
  EXPECT_TRUE(worker.Run().ok());
  EXPECT_EQ(worker.slots_computed(), 2);
  EXPECT_EQ(observer.sessions, 1);
  EXPECT_EQ(observer.demands, 1);
  const auto calls = client_.calls();
  EXPECT_EQ(calls.open_session.size(), 1u);
  EXPECT_EQ(calls.streams.size(), 2u);
  EXPECT_EQ(calls.leaves, 2) << "each stream ends with a goodbye";
  EXPECT_EQ(calls.reports, 2);
}

TEST_F(TrainingWorkerTest, TheObserverHearsOfALostBlock) {
  client_.streams = {{FakeChiefClient::Gives(3, 0, 2)}, {FakeChiefClient::Gives(7, 0, 2)}};
  BusyObserver observer;
  TrainingWorker::Options options = NewOptions();
  options.observer = &observer;
  TrainingWorker worker(options, &client_);
  on_slot_ = [&] { worker.RequestStop(); };
  EXPECT_TRUE(absl::IsCancelled(worker.Run()));
  EXPECT_EQ(observer.blocks, 2);
  EXPECT_EQ(observer.lost, 1) << "the one that was given back is not";
}

TEST_F(TrainingWorkerTest, ARunThatFailedFailsTheWorker) {
  client_.streams = {{FakeChiefClient::Finishes("the loss of step 5 is not finite")}};
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 5"));
  EXPECT_EQ(client_.calls().leaves, 1);
}

// SM-08
TEST_F(TrainingWorkerTest, LooksForAChiefUntilTheLimit) {
  client_.get_run = {absl::UnavailableError("connection refused")};
  AutoAdvancingClock clock;
  const absl::Time start = clock.Now();
  TrainingWorker::Options options = NewOptions();
  options.clock = &clock;
  const absl::Status status = TrainingWorker(options, &client_).Run();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the chief at grpc://chief:2222 has been unreachable for 10s"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
  EXPECT_GE(clock.Now() - start, absl::Seconds(10));
  EXPECT_LE(clock.Now() - start, absl::Seconds(11));
  EXPECT_GE(client_.calls().get_run, 10);
  EXPECT_LE(client_.calls().get_run, 30) << "it backs off";
  EXPECT_EQ(workloads_made_, 0);
}

TEST_F(TrainingWorkerTest, AChiefThatComesLateIsFound) {
  client_.get_run = {absl::UnavailableError("1"), absl::UnavailableError("2"), absl::DeadlineExceededError("3"),
                     absl::OkStatus()};
  client_.open_session = {absl::UnavailableError("the chief is initializing the model"), absl::OkStatus()};
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().get_run, 5);
  EXPECT_EQ(workloads_made_, 1) << "the workload is kept";
}

TEST_F(TrainingWorkerTest, ANewGenerationIsANewSession) {
  client_.streams = {
      {FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::AbortedError("generation 1 is over"))},
      {FakeChiefClient::Fails(absl::UnavailableError("the stream broke"))},
      {FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  const auto calls = client_.calls();
  EXPECT_EQ(calls.streams.size(), 3u);
  EXPECT_EQ(worker_->slots_computed(), 2);
  EXPECT_EQ(workloads_made_, 1);
  ASSERT_EQ(calls.open_session.size(), 3u);
  EXPECT_EQ(calls.open_session[0].incarnation(), calls.open_session[2].incarnation());
}

// A program may set variables after every step, and may take longer than the worker would wait for a chief.
TEST_F(TrainingWorkerTest, ReopensImmediatelyAfterEachBlock) {
  constexpr int kSessions = 50;
  for (int step = 0; step < kSessions; ++step) {
    client_.streams.push_back(
        {FakeChiefClient::Gives(step, 0, 1), FakeChiefClient::Fails(absl::AbortedError("variables were set"))});
  }
  client_.streams.push_back({FakeChiefClient::Finishes()});
  chief_wait_ = absl::Seconds(10);
  const absl::Status status = Run(absl::Seconds(1));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(worker_->slots_computed(), kSessions);
}

TEST_F(TrainingWorkerTest, AnotherConfigurationIsAnotherTask) {
  client_.streams = {{}, {FakeChiefClient::Finishes()}};
  client_.streams[0] = {FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::AbortedError("restarted"))};
  on_slot_ = [this] { client_.config.mutable_training()->set_seed(99); };
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(workloads_made_, 2);
}

TEST_F(TrainingWorkerTest, WhatCannotBeHelpedByTryingAgainEndsTheWorker) {
  client_.open_session = {absl::FailedPreconditionError("the worker's model is not the run's")};
  EXPECT_TRUE(absl::IsFailedPrecondition(Run()));
  EXPECT_EQ(client_.calls().get_run, 1);
  client_.open_session.clear();
  client_.streams = {{FakeChiefClient::Fails(absl::InvalidArgumentError("a wrong piece"))}};
  EXPECT_TRUE(absl::IsInvalidArgument(Run()));
  workload_status_ = absl::NotFoundError("no such file: train-images.gz");
  EXPECT_TRUE(absl::IsNotFound(Run()));
}

// The chief counts as absent from the time at which a call to it fails, no matter how long ago the last call was.
TEST_F(TrainingWorkerTest, AChiefThatGoesDuringALongBlockIsLookedFor) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::UnavailableError("Socket closed"))},
                     {FakeChiefClient::Finishes()}};
  on_slot_ = [this] { clock_.Advance(absl::Hours(2)); };
  chief_wait_ = absl::Hours(1);
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().streams.size(), 2u);
}

TEST_F(TrainingWorkerTest, ATransportErrorOpensAnotherStream) {
  client_.streams = {{FakeChiefClient::Fails(absl::UnknownError("Stream removed"))},
                     {FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::InternalError("RST_STREAM"))},
                     {FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().streams.size(), 3u);
}

TEST_F(TrainingWorkerTest, ItsOwnFailureIsNotTakenForTheChiefsAbsence) {
  workload_status_ = absl::UnavailableError("the file server does not answer");
  EXPECT_EQ(Run(), workload_status_);
  EXPECT_EQ(client_.calls().get_run, 1);
}

TEST_F(TrainingWorkerTest, AnInputThatEndsIsTheChiefsToEndTheRun) {
  input_end_ = 1;
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Gives(1, 0, 1), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(worker_->slots_computed(), 1);
  EXPECT_EQ(client_.calls().ends_of_input, 1);
}

TEST_F(TrainingWorkerTest, StopsWhileItWaitsForAToken) {
  worker_ = std::make_unique<TrainingWorker>(NewOptions(), &client_);
  absl::Status status;
  std::thread runner([&] { status = worker_->Run(); });
  client_.AwaitTokenCalls(1);
  worker_->RequestStop();
  runner.join();
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(client_.calls().leaves, 1);
  EXPECT_EQ(client_.calls().cancels, 0);
}

TEST_F(TrainingWorkerTest, StopsWhileItLooksForTheChief) {
  client_.get_run = {absl::UnavailableError("connection refused")};
  worker_ = std::make_unique<TrainingWorker>(NewOptions(), &client_);
  absl::Status status;
  std::thread runner([&] { status = worker_->Run(); });
  clock_.AwaitWaiters(1);
  worker_->RequestStop();
  runner.join();
  EXPECT_TRUE(absl::IsCancelled(status));
}

// The chief may take long to answer.
TEST_F(TrainingWorkerTest, AStopEndsACallToTheChief) {
  client_.get_run_hangs = true;
  worker_ = std::make_unique<TrainingWorker>(NewOptions(), &client_);
  absl::Status status;
  std::thread runner([&] { status = worker_->Run(); });
  client_.AwaitGetRunCalls(1);
  worker_->RequestStop();
  runner.join();
  EXPECT_TRUE(absl::IsCancelled(status));
}

// Returns the status that a worker reads from the address file of a run that ended with `run`.
absl::Status EndInFile(const absl::Status& run) {
  MemoryFileSystem fs;
  EXPECT_TRUE(fs.CreateDirectory("/run").ok());
  EXPECT_TRUE(WriteFileAtomically(&fs, "/run/chief", EndLine(run)).ok());
  return FindTargets(&fs, ParseMasterAddress("file:/run/chief").value()).status();
}

TEST_F(TrainingWorkerTest, ARunThatWasOverBeforeTheWorkerCameIsACleanEnd) {
  AutoAdvancingClock clock;
  TrainingWorker::Options options = NewOptions();
  options.clock = &clock;
  const absl::Time start = clock.Now();
  client_.get_run = {EndInFile(absl::OkStatus())};
  EXPECT_TRUE(TrainingWorker(options, &client_).Run().ok());
  EXPECT_GE(clock.Now() - start, absl::Seconds(3)) << "a chief may be starting";
  EXPECT_LE(clock.Now() - start, absl::Seconds(5));
  client_.get_run = {EndInFile(absl::InvalidArgumentError("the loss of step 5 is not finite"))};
  EXPECT_EQ(TrainingWorker(options, &client_).Run(), client_.get_run[0]);
  EXPECT_EQ(workloads_made_, 0);
}

TEST_F(TrainingWorkerTest, AMarkThatGoesAwayWasThatOfAnEarlierEnd) {
  const absl::Status finished = EndInFile(absl::OkStatus());
  const absl::Status failed = EndInFile(absl::InvalidArgumentError("the loss of step 5 is not finite"));
  client_.get_run = {finished, failed, absl::UnavailableError("no chief has written /run/chief yet"), absl::OkStatus()};
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().get_run, 4);
  EXPECT_EQ(worker_->slots_computed(), 1);
}

TEST_F(TrainingWorkerTest, AWorkerOfTheRunBelievesTheMarkAtOnce) {
  client_.get_run = {absl::OkStatus(), EndInFile(absl::OkStatus())};
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::UnavailableError("gone"))}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().get_run, 2);
}

TEST_F(TrainingWorkerTest, OnlyTheAddressFileMakesOutOfRangeACleanEnd) {
  client_.get_run = {absl::OutOfRangeError("the run is over, says /run/chief")};
  EXPECT_EQ(Run(), client_.get_run[0]);
  EXPECT_EQ(client_.calls().get_run, 1);
}

TEST_F(TrainingWorkerTest, StopsBeforeItStarts) {
  worker_ = std::make_unique<TrainingWorker>(NewOptions(), &client_);
  worker_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(worker_->Run()));
}

TEST_F(TrainingWorkerTest, StopsInTheMiddleOfABlock) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 4)}};
  on_slot_ = [this] { worker_->RequestStop(); };
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_EQ(worker_->slots_computed(), 0);
  const auto calls = client_.calls();
  EXPECT_EQ(calls.reports, 0);
  EXPECT_EQ(calls.leaves, 1) << "the block is free at once";
  EXPECT_EQ(calls.cancels, 0);
}

// A contribution that is being sent must be completed, because the chief may have begun to apply it.
TEST_F(TrainingWorkerTest, AStopLetsItFinishSendingContribution) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 2)}};
  int slot = 0;
  on_backward_ = [&] {
    if (++slot == 2) worker_->RequestStop();
  };
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_EQ(worker_->slots_computed(), 2);
  const auto calls = client_.calls();
  EXPECT_EQ(calls.reports, 2);
  EXPECT_EQ(calls.gradients, 1);
  EXPECT_EQ(calls.await_token, 2) << "which ends the contribution";
  EXPECT_EQ(calls.leaves, 1);
  EXPECT_EQ(calls.cancels, 0);
}

TEST_F(TrainingWorkerTest, AStopBeforeItSendsDropsTheBlock) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 2)}};
  on_backward_ = [this] { worker_->RequestStop(); };  // in the first of two slots
  EXPECT_TRUE(absl::IsCancelled(Run()));
  const auto calls = client_.calls();
  EXPECT_EQ(calls.reports, 0);
  EXPECT_EQ(calls.await_token, 1);
  EXPECT_EQ(calls.leaves, 1);
}

TEST_F(TrainingWorkerTest, ASecondStopBreaksTheStreamOff) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1)}};
  on_backward_ = [this] {
    worker_->RequestStop();
    worker_->RequestStop();
  };
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_EQ(client_.calls().cancels, 1);
}

TEST_F(TrainingWorkerTest, HeartbeatsComeThreeTimesInALease) {
  int beats = 0;
  on_slot_ = [&] {
    for (int i = 1; i <= 4; ++i) {
      clock_.AwaitWaiters(1);
      clock_.Advance(absl::Seconds(1));
      clock_.AwaitWaiters(1);  // the beat is over; the next one is pending
    }
    beats = client_.calls().heartbeat;
  };
  client_.streams = {{FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(beats, 4);
}

TEST_F(TrainingWorkerTest, TheEndDuringABlockUsesTheSameStream) {
  client_.heartbeat_finished = true;
  on_slot_ = [&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
    clock_.AwaitWaiters(1);
  };
  client_.streams = {{FakeChiefClient::Gives(0, 0, 4), FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run().ok());
  const auto calls = client_.calls();
  EXPECT_EQ(calls.streams.size(), 1u);
  EXPECT_EQ(calls.leaves, 1);
  EXPECT_EQ(calls.reports, 0) << "the block was dropped";
}

TEST_F(TrainingWorkerTest, ANewGenerationOpensANewSession) {
  client_.heartbeat = {absl::AbortedError("unknown session"), absl::OkStatus()};
  bool first = true;
  on_slot_ = [&] {
    if (!std::exchange(first, false)) return;
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
    clock_.AwaitWaiters(1);
  };
  client_.streams = {{FakeChiefClient::Gives(0, 0, 4)}, {FakeChiefClient::Finishes()}};
  EXPECT_TRUE(Run(absl::Milliseconds(20)).ok());
  EXPECT_EQ(client_.calls().streams.size(), 2u);
}

}  // namespace
}  // namespace lockstep
