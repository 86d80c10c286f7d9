#include "lockstep/server/process/chief_process.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {
namespace {

class ChiefProcessTest : public ::testing::Test {
 protected:
  ChiefProcessTest() {
    options_.chief.fs = &fs_;
    options_.chief.clock = &clock_;
    options_.chief.logdir = "logdir";
    options_.chief.config.mutable_optimizer()->mutable_sgd();
    options_.chief.config.mutable_training()->set_steps(10);
    options_.chief.housekeeping_period = absl::ZeroDuration();
    ApplyDefaults(&options_.chief.config);
  }

  // With a worker that then leaves.
  static void TrainTo(int64_t step, Chief* chief) {
    v1::OpenSessionRequest request;
    request.set_worker("worker");
    request.set_incarnation(1);
    *request.mutable_model() = FrameModel();
    CompleteDeclaration(&request, /*canary=*/1);
    const uint64_t session = chief->sessions()->OpenSession(request)->session_id();
    FrameWorker worker(session, chief->generation(), [&](std::shared_ptr<StepListener> listener) {
      return chief->sessions()
          ->OpenStep(session, chief->generation(), ValuePath::kStreamed, std::move(listener))
          .value();
    });
    ASSERT_TRUE(worker.Ask().ok());
    while (chief->GetStatus().global_step() < step) ASSERT_TRUE(worker.Push().ok());
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  ChiefProcess::Options options_;
};

TEST_F(ChiefProcessTest, ASignalStopsTheChief) {
  ChiefProcess process(options_);
  ASSERT_TRUE(process.Create().ok());
  kill(getpid(), SIGTERM);
  const absl::Status status = process.Wait();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(process.ExitCode(status), kExitTerminated);
}

// Such as while a large checkpoint is restored: nothing has to be saved.
TEST_F(ChiefProcessTest, AStopBeforeThereIsAChiefLosesNothing) {
  const auto stop_while_the_disk_hangs = [this] {
    HangingFileSystem hanging(&memory_);
    hanging.Hang("logdir");
    options_.chief.fs = &hanging;
    // The watch ends the process at once.
    options_.chief.config.mutable_checkpoint()->set_stop_seconds(-absl::ToDoubleSeconds(kEndingLimit));
    ChiefProcess process(options_);
    const auto stopping = Executor::Threads()->Start("stop", [&hanging] {
      hanging.AwaitHanging();
      kill(getpid(), SIGTERM);
    });
    process.Create().IgnoreError();
    std::_Exit(kExitDone);
  };
  EXPECT_EXIT(stop_while_the_disk_hangs(), ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST_F(ChiefProcessTest, AUserSignalDuringTheStartIsKept) {
  HangingFileSystem hanging(&memory_);
  options_.chief.fs = &hanging;
  hanging.Hang("logdir");
  ChiefProcess process(options_);
  const auto saving = Executor::Threads()->Start("save", [&] {
    hanging.AwaitHanging();
    process.RequestSave();
    hanging.Release();
  });
  ASSERT_TRUE(process.Create().ok());
  Chief* const chief = process.chief();
  TrainTo(3, chief);
  while (chief->GetStatus().checkpoint() != "logdir/model.ckpt-3") {
    chief->Housekeep();  // the save follows the first checkpoint
    sched_yield();
  }
  kill(getpid(), SIGTERM);
  EXPECT_EQ(process.ExitCode(process.Wait()), kExitTerminated);
}

TEST_F(ChiefProcessTest, AStopByTheOwnerEndsItAsASignalDoes) {
  options_.watch_signals = false;
  ChiefProcess process(options_);
  ASSERT_TRUE(process.Create().ok());
  process.RequestStop();
  EXPECT_EQ(process.ExitCode(process.Wait()), kExitTerminated);
}

TEST_F(ChiefProcessTest, WaitsForAPredecessorThatIsStillEnding) {
  options_.predecessor_limit = absl::Minutes(1);
  auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ChiefProcess process(options_);
  const auto ending = Executor::Threads()->Start("predecessor", [&] {
    clock_.AwaitWaiters(1);
    predecessor.reset();
    clock_.Advance(absl::Seconds(1));
  });
  const absl::Status created = process.Create();
  EXPECT_TRUE(created.ok()) << created;
}

TEST_F(ChiefProcessTest, APredecessorThatStaysMayBeGoneTheNextTime) {
  options_.predecessor_limit = absl::Seconds(1);
  const auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ChiefProcess process(options_);
  const auto time = Executor::Threads()->Start("time", [&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Minutes(1));
  });
  const absl::Status created = process.Create();
  EXPECT_TRUE(absl::IsFailedPrecondition(created)) << created;
  EXPECT_EQ(process.ExitCode(created), kExitRetryable);
}

TEST_F(ChiefProcessTest, ASignalEndsTheWaitForAPredecessor) {
  options_.predecessor_limit = absl::Hours(1);
  const auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ChiefProcess process(options_);
  const auto signal = Executor::Threads()->Start("signal", [&] {
    clock_.AwaitWaiters(1);
    kill(getpid(), SIGTERM);
  });
  const absl::Status created = process.Create();
  EXPECT_TRUE(absl::IsCancelled(created)) << created;
  EXPECT_EQ(process.ExitCode(created), kExitTerminated);
}

TEST_F(ChiefProcessTest, AnInputErrorAtTheStartMayPass) {
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/generation", absl::InternalError("Input/output error"));
  ChiefProcess process(options_);
  const absl::Status created = process.Create();
  EXPECT_TRUE(absl::IsInternal(created)) << created;
  EXPECT_EQ(process.ExitCode(created), kExitRetryable);
}

TEST_F(ChiefProcessTest, TheExitCodeSaysHowARunHasEnded) {
  ChiefProcess process(options_);
  ASSERT_TRUE(process.Create().ok());
  EXPECT_EQ(process.ExitCode(absl::OkStatus()), kExitDone);
  EXPECT_EQ(process.ExitCode(absl::InvalidArgumentError("NaN")), kExitFailed);
  EXPECT_EQ(process.ExitCode(absl::FailedPreconditionError("taken over")), kExitFailed);
  EXPECT_EQ(process.ExitCode(absl::DeadlineExceededError("the disk hangs")), kExitFailed);
  EXPECT_EQ(process.ExitCode(absl::UnavailableError("the port is taken")), kExitRetryable);
}

}  // namespace
}  // namespace lockstep
