#include "lockstep/server/process/chief_host.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {
namespace {

// The period at which a standby looks at its chief.
constexpr absl::Duration kPeriod = absl::Milliseconds(50);

class ChiefHostTest : public ::testing::Test {
 protected:
  ChiefHostTest() {
    options_.chief.fs = &fs_;
    options_.chief.clock = &clock_;
    options_.chief.logdir = "logdir";
    options_.chief.config.mutable_optimizer()->mutable_sgd();
    options_.chief.config.mutable_training()->set_steps(10);
    options_.chief.housekeeping_period = absl::ZeroDuration();
    ApplyDefaults(&options_.chief.config);
  }

  // Trains until the global step is `step`, with one worker that then disconnects.
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

  // Sends a signal while Create waits for another chief.
  void ExpectSignalEndsWait() {
    ChiefHost host(options_);
    const auto signal = Executor::Threads()->Start("signal", [&] {
      clock_.AwaitWaiters(1);
      kill(getpid(), SIGTERM);
    });
    const absl::Status created = host.Create();
    EXPECT_TRUE(absl::IsCancelled(created)) << created;
    EXPECT_EQ(host.ExitCode(created), kExitTerminated);
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  ChiefHost::Options options_;
};

TEST_F(ChiefHostTest, ASignalStopsTheChief) {
  ChiefHost host(options_);
  ASSERT_TRUE(host.Create().ok());
  kill(getpid(), SIGTERM);
  const absl::Status status = host.Wait();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(host.ExitCode(status), kExitTerminated);
}

// There is nothing to save if a stop arrives during, for example, the restore of a large checkpoint.
TEST_F(ChiefHostTest, AStopBeforeThereIsAChiefLosesNothing) {
  const auto stop_while_the_disk_hangs = [this] {
    HangingFileSystem hanging(&memory_);
    hanging.Hang("logdir");
    options_.chief.fs = &hanging;
    // Makes the watch end the process immediately.
    options_.chief.config.mutable_checkpoint()->set_stop_seconds(-absl::ToDoubleSeconds(kEndingLimit));
    ChiefHost host(options_);
    const auto stopping = Executor::Threads()->Start("stop", [&hanging] {
      hanging.AwaitHanging();
      kill(getpid(), SIGTERM);
    });
    host.Create().IgnoreError();
    std::_Exit(kExitDone);
  };
  EXPECT_EXIT(stop_while_the_disk_hangs(), ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST_F(ChiefHostTest, AUserSignalDuringTheStartIsKept) {
  HangingFileSystem hanging(&memory_);
  options_.chief.fs = &hanging;
  hanging.Hang("logdir");
  ChiefHost host(options_);
  const auto saving = Executor::Threads()->Start("save", [&] {
    hanging.AwaitHanging();
    host.RequestSave();
    hanging.Release();
  });
  ASSERT_TRUE(host.Create().ok());
  Chief* const chief = host.chief();
  TrainTo(3, chief);
  while (chief->GetStatus().checkpoint() != "logdir/model.ckpt-3") {
    chief->Housekeep();  // the save follows the first checkpoint
    sched_yield();
  }
  kill(getpid(), SIGTERM);
  EXPECT_EQ(host.ExitCode(host.Wait()), kExitTerminated);
}

TEST_F(ChiefHostTest, AStopByTheOwnerEndsItAsASignalDoes) {
  options_.watch_signals = false;
  ChiefHost host(options_);
  ASSERT_TRUE(host.Create().ok());
  host.RequestStop();
  EXPECT_EQ(host.ExitCode(host.Wait()), kExitTerminated);
}

TEST_F(ChiefHostTest, WaitsForAnEndingPredecessor) {
  options_.predecessor_limit = absl::Minutes(1);
  auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ChiefHost host(options_);
  const auto ending = Executor::Threads()->Start("predecessor", [&] {
    clock_.AwaitWaiters(1);
    predecessor.reset();
    clock_.Advance(absl::Seconds(1));
  });
  const absl::Status created = host.Create();
  EXPECT_TRUE(created.ok()) << created;
}

TEST_F(ChiefHostTest, ALivePredecessorMayBeGoneNextTime) {
  options_.predecessor_limit = absl::Seconds(1);
  const auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ChiefHost host(options_);
  const auto time = Executor::Threads()->Start("time", [&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Minutes(1));
  });
  const absl::Status created = host.Create();
  EXPECT_TRUE(absl::IsFailedPrecondition(created)) << created;
  EXPECT_EQ(host.ExitCode(created), kExitRetryable);
}

TEST_F(ChiefHostTest, ASignalEndsTheWaitForAPredecessor) {
  options_.predecessor_limit = absl::Hours(1);
  const auto predecessor = RunDirectory::Open(&fs_, "logdir").value();
  ExpectSignalEndsWait();
}

TEST_F(ChiefHostTest, AStandbyFollowsAChiefThatHasEnded) {
  options_.standby = true;
  auto predecessor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(predecessor->Beat().ok());
  ChiefHost host(options_);
  const auto ending = Executor::Threads()->Start("predecessor", [&] {
    clock_.AwaitWaiters(1);
    predecessor.reset();
    clock_.Advance(kPeriod);
  });
  const absl::Status created = host.Create();
  ASSERT_TRUE(created.ok()) << created;
  EXPECT_EQ(host.chief()->generation(), 2);
}

TEST_F(ChiefHostTest, AStandbyReplacesASilentChief) {
  options_.standby = true;
  const absl::Duration lease = absl::Seconds(options_.chief.config.cluster().lease_seconds());
  const auto predecessor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(predecessor->Beat().ok());
  ChiefHost host(options_);
  const auto time = Executor::Threads()->Start("time", [&] {
    for (int i = 0; i < 3; ++i) {
      clock_.AwaitWaiters(1);
      EXPECT_TRUE(predecessor->Beat().ok());
      clock_.Advance(lease);
    }
    clock_.AwaitWaiters(1);
    EXPECT_TRUE(predecessor->Beat().ok()) << "it has shown that it runs";
    clock_.Advance(kPeriod);
    clock_.AwaitWaiters(1);
    clock_.Advance(lease);
  });
  const absl::Status created = host.Create();
  ASSERT_TRUE(created.ok()) << created;
  time->Join();
  EXPECT_EQ(host.chief()->generation(), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(predecessor->Beat()));
  EXPECT_TRUE(absl::IsFailedPrecondition(predecessor->WriteRecord(v1::RunRecord())));
}

TEST_F(ChiefHostTest, AStandbyOutlastsAFullDisk) {
  options_.standby = true;
  const absl::Duration lease = absl::Seconds(options_.chief.config.cluster().lease_seconds());
  const auto predecessor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(predecessor->Beat().ok());
  fs_.FillDiskAfter(0);
  ChiefHost host(options_);
  const auto time = Executor::Threads()->Start("time", [&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(lease);
    clock_.AwaitWaiters(1);
    EXPECT_TRUE(predecessor->CheckOwned().ok());
    fs_.Heal();
    clock_.Advance(lease);
    clock_.AwaitWaiters(1);
    clock_.Advance(lease);
  });
  const absl::Status created = host.Create();
  time->Join();
  ASSERT_TRUE(created.ok()) << created;
  EXPECT_TRUE(absl::IsFailedPrecondition(predecessor->CheckOwned()));
}

TEST_F(ChiefHostTest, AStandbyStandsByForTheNextChief) {
  options_.standby = true;
  const absl::Duration lease = absl::Seconds(options_.chief.config.cluster().lease_seconds());
  const auto predecessor = RunDirectory::Open(&memory_, "logdir").value();
  ASSERT_TRUE(predecessor->Beat().ok());
  ChiefHost host(options_);
  std::unique_ptr<RunDirectory> other;
  const auto time = Executor::Threads()->Start("time", [&] {
    clock_.AwaitWaiters(1);
    other = RunDirectory::Open(&memory_, "logdir", 1).value();
    EXPECT_TRUE(other->Beat().ok());
    clock_.Advance(lease);
    clock_.AwaitWaiters(1);
    other.reset();
    clock_.Advance(lease);
  });
  const absl::Status created = host.Create();
  ASSERT_TRUE(created.ok()) << created;
  EXPECT_EQ(host.chief()->generation(), 3);
}

TEST_F(ChiefHostTest, ASignalEndsAStandby) {
  options_.standby = true;
  const auto predecessor = RunDirectory::Open(&memory_, "logdir").value();
  ExpectSignalEndsWait();
}

TEST_F(ChiefHostTest, AStandbyNeedsALogdir) {
  options_.standby = true;
  options_.chief.logdir.clear();
  ChiefHost host(options_);
  const absl::Status created = host.Create();
  EXPECT_TRUE(absl::IsInvalidArgument(created)) << created;
  EXPECT_EQ(host.ExitCode(created), kExitBadConfiguration);
}

// A frozen chief that wakes up writes nothing, and ends at its next beat.
TEST_F(ChiefHostTest, AReplacedChiefEnds) {
  options_.chief.beat_period = absl::Seconds(1);
  options_.watch_signals = false;
  ChiefHost host(options_);
  ASSERT_TRUE(host.Create().ok());
  TrainTo(3, host.chief());
  const auto standby = RunDirectory::Open(&memory_, "logdir", 1).value();
  const std::vector<std::string> names = memory_.ListDirectory("logdir").value();
  clock_.Advance(absl::Minutes(1));
  const absl::Status ended = host.Wait();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_EQ(host.ExitCode(ended), kExitFailed);
  EXPECT_EQ(memory_.ListDirectory("logdir").value(), names);
}

TEST_F(ChiefHostTest, AnInputErrorAtTheStartMayPass) {
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "logdir/generation", absl::InternalError("Input/output error"));
  ChiefHost host(options_);
  const absl::Status created = host.Create();
  EXPECT_TRUE(absl::IsInternal(created)) << created;
  EXPECT_EQ(host.ExitCode(created), kExitRetryable);
}

TEST_F(ChiefHostTest, TheExitCodeSaysHowARunHasEnded) {
  ChiefHost host(options_);
  ASSERT_TRUE(host.Create().ok());
  EXPECT_EQ(host.ExitCode(absl::OkStatus()), kExitDone);
  EXPECT_EQ(host.ExitCode(absl::InvalidArgumentError("NaN")), kExitFailed);
  EXPECT_EQ(host.ExitCode(absl::FailedPreconditionError("taken over")), kExitFailed);
  EXPECT_EQ(host.ExitCode(absl::DeadlineExceededError("the disk hangs")), kExitFailed);
  EXPECT_EQ(host.ExitCode(absl::UnavailableError("the port is taken")), kExitRetryable);
}

class ServedChiefTest : public ChiefHostTest {
 protected:
  ServedChiefTest() {
    EXPECT_TRUE(memory_.CreateDirectory("/run").ok());
    options_.listen = "127.0.0.1:0";
    options_.serve = [](const std::string& listen, Chief*) -> absl::StatusOr<ServedChief> {
      EXPECT_EQ(listen, "127.0.0.1:0");
      return ServedChief{"127.0.0.1:77", 77, "127.0.0.1:77", nullptr};
    };
    options_.port_file = "/run/port";
    options_.address_file.path = "/run/address";
  }

  std::string Address() { return ReadFile(&memory_, "/run/address").value_or("none"); }
};

TEST_F(ServedChiefTest, WritesItsPortAndItsAddress) {
  ChiefHost host(options_);
  ASSERT_TRUE(host.Create().ok());
  ASSERT_TRUE(host.Serve().ok());
  EXPECT_EQ(host.served().address, "127.0.0.1:77");
  EXPECT_EQ(ReadFile(&memory_, "/run/port").value(), "77\n");
  EXPECT_EQ(Address(), AddressLine("grpc://127.0.0.1:77"));
}

TEST_F(ServedChiefTest, MarksTheEndOnceAndNoStop) {
  const std::string address = AddressLine("grpc://127.0.0.1:77");
  for (const absl::Status& run : {absl::OkStatus(), absl::CancelledError("stopped")}) {
    ChiefHost host(options_);
    ASSERT_TRUE(host.Create().ok());
    ASSERT_TRUE(host.Serve().ok());
    host.MarkEnd(run);
    EXPECT_EQ(Address(), run.ok() ? EndLine(run) : address);
    ASSERT_TRUE(WriteFileAtomically(&memory_, "/run/address", "the next chief's").ok());
    host.MarkEnd(absl::OkStatus());
    EXPECT_EQ(Address(), "the next chief's");
  }
}

TEST_F(ServedChiefTest, RestoresTheMarkOfAnUnservedRun) {
  const std::string mark = EndLine(absl::OkStatus());
  ASSERT_TRUE(WriteFileAtomically(&memory_, "/run/address", mark).ok());
  {
    ChiefHost host(options_);
    ASSERT_TRUE(host.Create().ok());
    EXPECT_EQ(Address(), "none");
  }
  EXPECT_EQ(Address(), mark);
}

TEST_F(ServedChiefTest, RefusesAnAddressFileInNoDirectory) {
  options_.address_file.path = "/missing/address";
  ChiefHost host(options_);
  const absl::Status created = host.Create();
  EXPECT_TRUE(absl::IsInvalidArgument(created)) << created;
  EXPECT_EQ(host.ExitCode(created), kExitBadConfiguration);
}

}  // namespace
}  // namespace lockstep
