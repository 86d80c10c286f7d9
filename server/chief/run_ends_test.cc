#include "lockstep/server/chief/run_ends.h"

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class RunEndsTest : public ChiefFixture {
 protected:
  // Sends a loss that is not finite for a slot of the step in progress.
  void Diverge() {
    StepFrame frame = worker_->NewFrame(*worker_->token());
    worker_->AddReports(&frame);
    frame.reports[1].set_loss(std::numeric_limits<float>::quiet_NaN());
    worker_->AddAllPieces(&frame);
    frame.end = true;
    ASSERT_TRUE(worker_->Send(frame).ok());
  }

  // Waits for the end of a run that is over, while a new worker starts every second for 30 seconds. Expects each of
  // them to learn of the end. Sets `*message` to the message that they receive.
  absl::Status EndWithLateWorkers(std::string* message) {
    absl::Status status = absl::UnknownError("still waiting");
    std::atomic<bool> ended{false};
    std::thread waiter([&] {
      status = chief_->ends()->Wait();
      ended = true;
    });
    while (!worker_->finished()) worker_->Drain();
    worker_.reset();
    const absl::Time begin = clock_.Now();
    while (!ended) {
      const auto late = OpenSession(absl::StrCat("late at ", absl::FormatTime(clock_.Now())));
      EXPECT_TRUE(late.ok()) << late.status();
      if (!late.ok()) break;
      const auto worker = Connect(late->session_id());
      EXPECT_TRUE(worker->Ask().ok());
      EXPECT_TRUE(worker->finished());
      *message = worker->finish_message();
      EXPECT_TRUE(worker->Leave().ok());
      clock_.Advance(absl::Seconds(1));
    }
    waiter.join();
    EXPECT_GE(clock_.Now() - begin, absl::Seconds(30));
    return status;
  }
};

TEST_F(RunEndsTest, TrainsToTheEndAndSaysGoodbye) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(0);
  TrainTo(10);
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
  EXPECT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
  const auto events = Events(0);
  EXPECT_EQ(events.front(), "START 0");
  EXPECT_EQ(events.back(), "STOP 0");
  for (const char* event : {"CHECKPOINT 0", "CHECKPOINT 10", "loss 2", "loss 10"}) {
    EXPECT_THAT(events, ::testing::Contains(event));
  }
  EXPECT_THAT(events, Not(Contains("loss 3")));
}

TEST_F(RunEndsTest, TheEndDoesNotWaitForASilentWorker) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(10);  // so that Wait only waits for the worker
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RunEndsTest, FailedLossSavesTheLastFiniteStep) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(5);
  Diverge();
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FAILED);
  EXPECT_THAT(chief_->GetStatus().message(), HasSubstr("the loss of step 6 is not finite")) << "logs count so";
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(1);
  heartbeat.set_generation(1);
  EXPECT_TRUE(chief_->sessions()->Heartbeat(heartbeat)->finished());
  const absl::Status status = WaitForEnd();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-5"));
  EXPECT_FALSE(Record().finished());
  EXPECT_FALSE(Record().has_end());
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 5);
}

TEST_F(RunEndsTest, FailureOfTheRunHidesTheErrorOfItsSave) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(5);
  fs_.FillDiskAfter(1000);
  Diverge();
  const absl::Status status = WaitForEnd();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-4"));
}

TEST_F(RunEndsTest, FailureForAnotherReasonSavesNothing) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  TrainTo(5);
  worker_.reset();
  chief_->training()->Fail(absl::DataLossError("worker-1 is outvoted"));
  EXPECT_TRUE(absl::IsDataLoss(chief_->ends()->Wait()));
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-4"));
}

TEST_F(RunEndsTest, AFailedFinalSaveKeepsTheLastOne) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  fs_.FillDiskAfter(1000);
  TrainTo(10);
  const absl::Status status = WaitForEnd();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the last step could not be saved"));
  fs_.Heal();
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().global_step(), 4);
}

TEST_F(RunEndsTest, AFinishedRunEndsAtOnceWhenAWorkerWasTold) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  const uint64_t session = OpenSession("late")->session_id();
  worker_ = Connect(session);
  ASSERT_TRUE(worker_->Ask().ok());
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-10"));
}

TEST_F(RunEndsTest, AFinishedRunThatNobodyAsksForEndsSoon) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  config_.mutable_training()->set_steps(8);
  ASSERT_TRUE(Restart().ok());
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(memory_.Exists("logdir/model.ckpt-8.index").value());
}

TEST_F(RunEndsTest, ALateWorkerLearnsTheEnd) {
  config_.mutable_cluster()->set_linger_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  std::string message;
  const absl::Status status = EndWithLateWorkers(&message);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(message, "");
  EXPECT_TRUE(memory_.Exists("logdir/model.ckpt-10.index").value());
}

TEST_F(RunEndsTest, LateWorkersLearnOfAFailure) {
  config_.mutable_cluster()->set_linger_seconds(30);
  ASSERT_TRUE(Start().ok());
  TrainTo(5);
  Diverge();
  std::string message;
  EXPECT_TRUE(absl::IsInvalidArgument(EndWithLateWorkers(&message)));
  EXPECT_THAT(message, HasSubstr("the loss of step 6 is not finite"));
}

TEST_F(RunEndsTest, AStopEndsTheLingeringOfARunThatIsOver) {
  config_.mutable_cluster()->set_linger_seconds(1e6);
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  absl::Status status = absl::UnknownError("still waiting");
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  while (!worker_->finished()) worker_->Drain();
  worker_.reset();
  chief_->ends()->RequestStop();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RunEndsTest, AStopBeforeTheEndSavesTheStep) {
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  chief_->ends()->RequestStop();
  const absl::Status status = chief_->ends()->Wait();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "stopped at step 3, saved logdir/model.ckpt-3");
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-3"));
  EXPECT_EQ(Events(0).back(), "STOP 0");
  EXPECT_TRUE(absl::IsUnavailable(OpenSession("late").status()));
  EXPECT_TRUE(absl::IsUnavailable(chief_->sessions()->OpenStep(1, 1, ValuePath::kStreamed, nullptr).status()));
}

TEST_F(RunEndsTest, ASlotsEndIsRecordedBeforeItsStep) {
  config_.mutable_checkpoint()->set_every_steps(1);
  for (const bool recorded : {false, true}) {
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainAndSave(2);
    while (!worker_->token()) worker_->Drain();  // the disk may delay the step
    StepFrame frame = worker_->NewFrame(*worker_->token());
    worker_->AddReports(&frame);
    frame.reports[0].set_stop(true);
    worker_->AddAllPieces(&frame);
    frame.end = true;
    if (!recorded)
      fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "lockstep.textproto", absl::InternalError(""));
    ASSERT_TRUE(worker_->Send(frame).ok());
    const absl::Status status = WaitForEnd();
    EXPECT_EQ(status.ok(), recorded) << status;
    // If the end is not recorded, step 3 must not be saved: an incarnation that starts there would not compute again
    // the slot that requested the end.
    EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), absl::StrCat("logdir/model.ckpt-", recorded ? 3 : 2));
    EXPECT_EQ(Record().has_end(), recorded);
    fs_.Heal();
  }
  EXPECT_EQ(Record().end().step(), 3);
}

TEST_F(RunEndsTest, UnknownRecordResultStillEndsRun) {
  followed_ = true;
  for (const bool heals : {true, false}) {
    logdir_ = absl::StrCat("logdir-", heals);
    ASSERT_TRUE(Restart().ok());
    ASSERT_TRUE(OpenSession("worker-0").ok());
    chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
    TrainAndSave(2);
    EXPECT_EQ(FollowersStep(), 0);
    worker_.reset();
    // The record is replaced, but a power loss may undo that.
    fs_.FailMatching(FaultyFileSystem::Operation::kSyncDirectory, logdir_, absl::InternalError("Input/output error"));
    const v1::SessionState last_state = HookState(2);
    const absl::Status message = chief_->ends()->RequestFinish("enough", &last_state);
    EXPECT_TRUE(absl::IsUnknown(message)) << message;
    EXPECT_EQ(FollowersStep(), 2);
    EXPECT_EQ(chief_->GetStatus().total_steps(), 2) << "no step beyond a possible end is computed";
    ASSERT_EQ(chief_->GetStatus().phase(), v1::RunStatus::FINISHED);
    if (heals) fs_.Heal();
    const absl::Status ended = WaitForEnd();
    EXPECT_EQ(ended.ok(), heals) << "workers are only notified of a recorded end: " << ended;
    chief_.reset();
    fs_.Heal();
    memory_.DropUnsyncedData();
    EXPECT_EQ(ReadRunRecord(&memory_, logdir_).value()->has_end(), heals);
    ASSERT_TRUE(Start().ok());
    EXPECT_EQ(chief_->GetStatus().global_step(), 2);
  }
}

TEST_F(RunEndsTest, TheReasonOnRecordIsThatOfWhoAskedFirst) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  const auto session = OpenSession("b");
  v1::RequestEndRequest request;
  request.set_session_id(session->session_id());
  request.set_generation(session->generation());
  request.set_reason("enough");
  ASSERT_TRUE(chief_->sessions()->RequestFinish(request).ok());
  ASSERT_TRUE(chief_->ends()->RequestFinish("the program left").ok()) << "before the thread that carries out requests";
  EXPECT_EQ(Record().end().reason(), "b asked for it: enough");
}

TEST_F(RunEndsTest, TheInputsEndIsRecordedFirst) {
  ASSERT_TRUE(Start().ok());
  TrainTo(2);
  StepFrame frame = worker_->NewFrame(*worker_->token());
  frame.end = true;
  frame.end_of_input = true;
  ASSERT_TRUE(worker_->Send(frame).ok());
  absl::Status status;
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  // The end must already be on record, because a chief that starts now would have no workers to request it again.
  EXPECT_EQ(Record().end().step(), 2);
  EXPECT_EQ(Record().end().reason(), "the input has ended");
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(chief_->GetStatus().message(), "the input has ended");
}

TEST_F(RunEndsTest, AStopWhileTheModelIsDeclaredEndsTheWaitForIt) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("worker").ok());
  EXPECT_TRUE(chief_->AwaitModel().ok());
  chief_->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->AwaitModel())) << "Wait may have returned before there was a model";
  EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
}

TEST_F(RunEndsTest, AStopBeforeTheModelIsKnownSavesNothing) {
  ASSERT_TRUE(Start().ok());
  chief_->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), absl::nullopt);
}

TEST_F(RunEndsTest, AStopThrowsAStepAwayThatIsHalfApplied) {
  for (const bool worker_left : {true, false}) {
    logdir_ = absl::StrCat("logdir-", worker_left);
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainTo(3);
    StepFrame frame = worker_->NewFrame(*worker_->token());
    worker_->AddReports(&frame);
    worker_->AddPiece(0, 0, 3, &frame);
    ASSERT_TRUE(worker_->Send(frame).ok());
    const v1::Token token = *worker_->token();
    if (!worker_left) worker_.reset();
    chief_->ends()->RequestStop();
    EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
    const std::string saved = logdir_ + "/model.ckpt-3";
    EXPECT_EQ(LatestCheckpoint(&memory_, logdir_).value(), saved);
    if (worker_left) {
      StepFrame rest = worker_->NewFrame(token);
      worker_->AddPiece(2, 0, 65540, &rest);
      rest.end = true;
      EXPECT_TRUE(worker_->Send(rest).ok());
      EXPECT_EQ(chief_->GetStatus().global_step(), 3)
          << "a late contribution is not accepted, because it would be lost";
    }
    ASSERT_TRUE(Restart().ok());
    TrainTo(10);
    ASSERT_TRUE(WaitForEnd().ok());
    EXPECT_EQ(Digest(logdir_ + "/model.ckpt-10"), Digest("logdir-1/model.ckpt-10"));
  }
  logdir_ = "undisturbed";
  ASSERT_TRUE(Restart().ok());
  TrainTo(10);
  ASSERT_TRUE(WaitForEnd().ok());
  EXPECT_EQ(Digest("undisturbed/model.ckpt-10"), Digest("logdir-1/model.ckpt-10"));
}

TEST_F(RunEndsTest, AStopGivesADiskThatHangsItsTime) {
  config_.mutable_checkpoint()->set_stop_seconds(7);
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainTo(3);
  hanging_.Hang("model.ckpt-3");
  chief_->ends()->RequestStop();
  absl::Status status;
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  hanging_.AwaitHanging();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(7));
  waiter.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "stopped at step 3, which is not saved: the disk has not taken step 3 within 7s");
  hanging_.Release();
}

TEST_F(RunEndsTest, AStopWhoseSaveFailsSaysSo) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(2);
  TrainTo(3);
  fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-3", absl::PermissionDeniedError("read-only"));
  chief_->ends()->RequestStop();
  const absl::Status status = chief_->ends()->Wait();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stopped at step 3, which is not saved: "));
  EXPECT_EQ(LatestCheckpoint(&memory_, "logdir").value(), std::string("logdir/model.ckpt-2"));
}

TEST_F(RunEndsTest, AStopTriesAgainWhatMayPass) {
  for (const bool passes : {true, false}) {
    // If the disk recovers, the limit must be so long that the loop below does not reach it, however slow the
    // checkpoint writer's thread is.
    config_.mutable_checkpoint()->set_stop_seconds(passes ? 1e9 : 30);
    logdir_ = absl::StrCat("logdir-", passes);
    worker_.reset();
    ASSERT_TRUE(Restart().ok());
    TrainAndSave(2);
    TrainTo(3);
    fs_.FillDiskAfter(1000);
    chief_->ends()->RequestStop();
    absl::Status status;
    std::atomic<bool> stopped{false};
    std::thread waiter([&] {
      status = chief_->ends()->Wait();
      stopped = true;
    });
    const absl::Time began = clock_.Now();
    while (!stopped) {
      if (passes && clock_.Now() - began > absl::Seconds(5)) fs_.Heal();
      clock_.Advance(absl::Milliseconds(50));
      std::this_thread::yield();
    }
    waiter.join();
    fs_.Heal();
    EXPECT_EQ(absl::IsCancelled(status), passes) << status;
    EXPECT_EQ(absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status), !passes) << status;
    EXPECT_EQ(LatestCheckpoint(&memory_, logdir_).value(), logdir_ + (passes ? "/model.ckpt-3" : "/model.ckpt-2"));
  }
}

TEST_F(RunEndsTest, AStopWhileTheEndIsBeingSavedIsBoundedToo) {
  ASSERT_TRUE(Start().ok());
  hanging_.Hang("model.ckpt-10");
  TrainTo(10);
  absl::Status status;
  std::thread waiter([&] { status = chief_->ends()->Wait(); });
  hanging_.AwaitHanging();
  chief_->ends()->RequestStop();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(config_.checkpoint().stop_seconds()));
  while (!worker_->finished()) {
    worker_->Drain();
    std::this_thread::yield();
  }
  worker_.reset();
  waiter.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the last step could not be saved"));
  hanging_.Release();
}

// The lock was removed because its owner seemed dead, or a network file system lost it.
TEST_F(RunEndsTest, EndsWhenAnotherChiefHasTakenOverItsLogdir) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(3);
  ASSERT_TRUE(memory_.Remove("logdir/lock").ok());
  const auto successor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(WriteCheckpointState(&memory_, "logdir", "logdir/model.ckpt-7", {}).ok());
  const std::vector<std::string> files = Files();
  TrainTo(5);
  EXPECT_FALSE(chief_->training()->Save().ok());
  const absl::Status status = chief_->ends()->Wait();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_FALSE(worker_->finished()) << "it looks for the successor";
  EXPECT_TRUE(absl::IsUnavailable(OpenSession("late").status()));
  worker_.reset();
  chief_.reset();
  EXPECT_EQ(Files(), files);
  EXPECT_EQ(ReadCheckpointState(&memory_, "logdir").value()->model_checkpoint_path(), "logdir/model.ckpt-7");
}

TEST_F(RunEndsTest, TheEventsOfAFollowedRunEndWithItsFollower) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  chief_->ends()->EndFollowersEvents();  // does nothing before there is a model
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  ASSERT_TRUE(worker_->Ask().ok());
  TrainTo(3);
  chief_->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(chief_->ends()->Wait()));
  EXPECT_THAT(Events(0), AllOf(Contains("CHECKPOINT 3"), Not(Contains("STOP 0"))));
  chief_->ends()->EndFollowersEvents();
  EXPECT_EQ(Events(0).back(), "STOP 0");
}

TEST_F(RunEndsTest, WhatHooksCameToAtARestoredLastStepIsSaved) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  const v1::SessionState seen = HookState(2);
  chief_->training()->log()->SetState(seen.step(), {seen.hook(0)});
  ASSERT_TRUE(worker_->Ask().ok());
  TrainAndSave(3);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->training()->log()->restored().step(), 2);
  worker_ = Connect(OpenSession("worker-0")->session_id());
  ASSERT_TRUE(worker_->Ask().ok());
  // A hook sees the update of the last step and ends the run.
  const v1::SessionState last = HookState(3);
  ASSERT_TRUE(chief_->ends()->RequestFinish("hook count", &last).ok());
  EXPECT_TRUE(WaitForEnd().ok());
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->training()->log()->restored().step(), 3);
}

TEST_F(RunEndsTest, AFollowerHearsThatTheLogdirIsLost) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  ASSERT_TRUE(worker_->Ask().ok());
  TrainTo(3);  // step 0 may already be saved
  ASSERT_TRUE(WriteFileAtomically(&memory_, "logdir/generation", "7\n").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->training()->Save()));
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->ends()->Wait()));
  const auto next = chief_->training()->log()->Await(3, absl::InfinitePast());
  EXPECT_TRUE(absl::IsFailedPrecondition(next.status())) << next.status() << ": it would wait forever";
}

TEST_F(RunEndsTest, FailedRunRecordsNoEnd) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(OpenSession("a").ok());
  chief_->training()->Fail(absl::InternalError("Input/output error"));
  const v1::SessionState last = HookState(0);
  const absl::Status ended = chief_->ends()->RequestFinish("hook count", &last);
  EXPECT_TRUE(absl::IsInternal(ended)) << ended;
  EXPECT_FALSE(Record().has_end());
}

TEST_F(RunEndsTest, LeavesEventsOfATakenOverLogdir) {
  followed_ = true;
  ASSERT_TRUE(Start().ok());
  worker_ = Connect(OpenSession("worker-0")->session_id());
  chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, StepMachine::kNoLimit);
  ASSERT_TRUE(worker_->Ask().ok());
  TrainTo(3);
  while (Events(0).empty()) std::this_thread::yield();  // Another thread writes them.
  ASSERT_TRUE(memory_.Remove("logdir/lock").ok());
  const auto successor = RunDirectory::Open(&memory_, "logdir").value();
  EXPECT_FALSE(chief_->training()->Save().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(chief_->ends()->Wait()));
  chief_->ends()->EndFollowersEvents();
  worker_.reset();
  chief_.reset();
  EXPECT_THAT(Events(0), AllOf(Contains("START 0"), Not(Contains("STOP 0"))));
}

}  // namespace
}  // namespace lockstep
