#include "lockstep/cli/launcher/launcher.h"

#include <signal.h>
#include <string.h>

#include <deque>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Processes that run until the test ends them. Their ids start at 1.
class FakeProcessTable : public ProcessTable {
 public:
  absl::StatusOr<int> Start(const ProcessSpec& spec) override {
    if (spec.command[0] == missing_program) return absl::NotFoundError(absl::StrCat("cannot start ", missing_program));
    commands.push_back(absl::StrJoin(spec.command, " "));
    const int pid = static_cast<int>(commands.size());
    running[pid] = spec.command[1];
    return pid;
  }
  void Signal(int pid, int signal) override {
    signals.push_back(absl::StrCat(running.at(pid), " ", sigabbrev_np(signal)));
  }
  absl::optional<ProcessExit> NextExit() override {
    if (exits_.empty()) return absl::nullopt;
    const ProcessExit exit = exits_.front();
    exits_.pop_front();
    return exit;
  }

  // Ends the process that runs as `name`.
  void End(const std::string& name, int exit_code, int signal = 0) {
    for (const auto& [pid, running_name] : running) {
      if (running_name != name) continue;
      exits_.push_back({pid, exit_code, signal});
      running.erase(pid);
      return;
    }
    ADD_FAILURE() << name << " does not run";
  }
  std::vector<std::string> Running() const {
    std::vector<std::string> names;
    for (const auto& [pid, name] : running) names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string missing_program;
  std::vector<std::string> commands;
  std::vector<std::string> signals;
  std::map<int, std::string> running;

 private:
  std::deque<ProcessExit> exits_;
};

class LauncherTest : public ::testing::Test {
 protected:
  void Make(int workers = 2, const std::string& listen = "127.0.0.1:0", int64_t max_restarts = 10) {
    Launcher::Options options;
    options.clock = &clock_;
    options.processes = &processes_;
    options.fs = &fs_;
    options.chief_command = [](const std::string& at) { return std::vector<std::string>{"/bin/chief", "chief", at}; };
    options.worker_command = [](int worker, const std::string& master) {
      return std::vector<std::string>{"/bin/worker", absl::StrCat("worker-", worker), master};
    };
    options.workers = workers;
    options.max_restarts = max_restarts;
    options.listen = listen;
    options.port_file = "/log/port";
    options.log_directory = "/log";
    options.say = [this](const std::string& line) { said_.push_back(line); };
    options.other_workers = other_workers_;
    if (is_declared_) {
      options.is_declared = is_declared_;
      options.master = "file:/run/address";
      options.worker_grace = absl::InfiniteDuration();
    }
    ASSERT_TRUE(fs_.CreateDirectory("/log").ok());
    launcher_ = std::make_unique<Launcher>(options);
  }
  // Starts workers of a chief elsewhere.
  void StartWorkersAlone(int workers, int64_t max_restarts = 10) {
    Launcher::Options options;
    options.clock = &clock_;
    options.processes = &processes_;
    options.fs = &fs_;
    options.worker_command = [](int worker, const std::string& master) {
      return std::vector<std::string>{"/bin/worker", absl::StrCat("worker-", worker), master};
    };
    options.workers = workers;
    options.max_restarts = max_restarts;
    options.master = "grpc://chief:2222";
    options.say = [this](const std::string& line) { said_.push_back(line); };
    launcher_ = std::make_unique<Launcher>(options);
    ASSERT_TRUE(launcher_->Start().ok());
    launcher_->Poll();
    ASSERT_EQ(processes_.running.size(), workers);
  }
  // Starts workers, one of which declares the run.
  void StartProgram(int workers = 2) {
    is_declared_ = [this] { return declared_; };
    Make(workers);
    ASSERT_TRUE(launcher_->Start().ok());
    launcher_->Poll();
    ASSERT_EQ(processes_.running.size(), workers);
  }
  void Declare() {
    declared_ = true;
    launcher_->Poll();
  }
  // Starts a chief that listens on port 4000, and its workers.
  void StartAll(int workers = 2, int64_t max_restarts = 10) {
    Make(workers, "127.0.0.1:0", max_restarts);
    ASSERT_TRUE(launcher_->Start().ok());
    WritePort("4000\n");
    launcher_->Poll();
    ASSERT_EQ(processes_.running.size(), workers + 1);
  }
  void WritePort(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(&fs_, "/log/port", text).ok()); }
  void Advance(absl::Duration duration) {
    clock_.Advance(duration);
    launcher_->Poll();
  }
  void EndProcess(const std::string& name, int exit_code, int signal = 0) {
    processes_.End(name, exit_code, signal);
    launcher_->Poll();
  }
  int ExitCode() { return launcher_->outcome().has_value() ? launcher_->outcome()->exit_code : -1; }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  FakeProcessTable processes_;
  std::vector<std::string> said_;
  std::function<bool()> is_declared_;
  bool declared_ = false;
  bool other_workers_ = false;
  std::unique_ptr<Launcher> launcher_;
};

TEST_F(LauncherTest, StartsTheWorkersWhenTheChiefListens) {
  Make();
  // Left by a previous run.
  WritePort("1111");
  ASSERT_TRUE(launcher_->Start().ok());
  launcher_->Poll();
  EXPECT_THAT(processes_.commands, ElementsAre("/bin/chief chief 127.0.0.1:0"));
  EXPECT_LE(launcher_->next_poll(), clock_.Now() + absl::Milliseconds(50));
  EXPECT_EQ(launcher_->master(), "");
  WritePort("4000\n");
  launcher_->Poll();
  EXPECT_THAT(processes_.commands,
              ElementsAre("/bin/chief chief 127.0.0.1:0", "/bin/worker worker-0 grpc://127.0.0.1:4000",
                          "/bin/worker worker-1 grpc://127.0.0.1:4000"));
  EXPECT_EQ(launcher_->master(), "grpc://127.0.0.1:4000");
  EXPECT_EQ(launcher_->next_poll(), absl::InfiniteFuture());
}

TEST_F(LauncherTest, ReachesAWildcardChiefOverLoopback) {
  Make(1, "0.0.0.0:0");
  ASSERT_TRUE(launcher_->Start().ok());
  WritePort("4000");
  launcher_->Poll();
  EXPECT_EQ(processes_.commands.back(), "/bin/worker worker-0 grpc://127.0.0.1:4000");
  EndProcess("chief", 0, SIGKILL);
  Advance(absl::Seconds(1));
  EXPECT_EQ(processes_.commands.back(), "/bin/chief chief 0.0.0.0:4000");
}

// Another run's chief may be listening on the socket, and this run's workers must not connect to it.
TEST_F(LauncherTest, WorkersStartOnceTheUnixSocketListens) {
  for (const std::string listen : {"unix:/run/chief.sock", "unix-abstract:chief"}) {
    Make(1, listen);
    ASSERT_TRUE(launcher_->Start().ok());
    launcher_->Poll();
    EXPECT_EQ(processes_.commands.back(), "/bin/chief chief " + listen);
    EXPECT_EQ(launcher_->master(), "");
    WritePort("0");
    launcher_->Poll();
    EXPECT_EQ(processes_.commands.back(), "/bin/worker worker-0 " + listen);
  }
}

TEST_F(LauncherTest, EndsWithZeroWhenTheChiefHasFinished) {
  StartAll();
  EndProcess("worker-1", 0);
  EndProcess("chief", 0);
  EXPECT_EQ(ExitCode(), -1);
  EndProcess("worker-0", 0);
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_THAT(processes_.signals, IsEmpty());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LauncherTest, NeedsNoWorkersForAFinishedRun) {
  Make();
  ASSERT_TRUE(launcher_->Start().ok());
  EndProcess("chief", 0);
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_EQ(processes_.commands.size(), 1);
}

TEST_F(LauncherTest, StopsLingeringWorkersAfterTwoSeconds) {
  StartAll();
  EndProcess("chief", 0);
  EndProcess("worker-0", 0);
  EXPECT_EQ(launcher_->next_poll(), clock_.Now() + absl::Seconds(2));
  Advance(absl::Milliseconds(1999));
  EXPECT_THAT(processes_.signals, IsEmpty());
  Advance(absl::Milliseconds(1));
  EXPECT_THAT(processes_.signals, ElementsAre("worker-1 TERM"));
  Advance(absl::Milliseconds(4999));
  EXPECT_EQ(processes_.signals.size(), 1);
  Advance(absl::Milliseconds(1));
  EXPECT_THAT(processes_.signals, ElementsAre("worker-1 TERM", "worker-1 KILL"));
  EXPECT_EQ(ExitCode(), -1);
  EndProcess("worker-1", 0, SIGKILL);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, StartsAKilledWorkerAgainSoon) {
  StartAll();
  EndProcess("worker-1", 0, SIGKILL);
  EXPECT_THAT(said_, ElementsAre("worker-1 was killed by SIGKILL; starting it again (1 of 10)"));
  EXPECT_THAT(processes_.Running(), ElementsAre("chief", "worker-0"));
  EXPECT_LE(launcher_->next_poll(), clock_.Now() + absl::Milliseconds(100));
  clock_.Advance(launcher_->next_poll() - clock_.Now());
  launcher_->Poll();
  EXPECT_EQ(processes_.commands.back(), "/bin/worker worker-1 grpc://127.0.0.1:4000");
  EXPECT_EQ(launcher_->next_poll(), absl::InfiniteFuture());
}

TEST_F(LauncherTest, RestartsAKilledChiefOnTheSamePort) {
  StartAll();
  EndProcess("chief", kExitRetryable);
  EXPECT_THAT(said_, ElementsAre("chief ended with exit code 138; starting it again (1 of 10)"));
  Advance(absl::Milliseconds(100));
  EXPECT_EQ(processes_.commands.back(), "/bin/chief chief 127.0.0.1:4000");
  EXPECT_THAT(processes_.Running(), ElementsAre("chief", "worker-0", "worker-1"));
}

TEST_F(LauncherTest, RestartsAChiefThatNeverListened) {
  Make(1);
  ASSERT_TRUE(launcher_->Start().ok());
  EndProcess("chief", 0, SIGSEGV);
  Advance(absl::Milliseconds(100));
  EXPECT_THAT(processes_.commands, ElementsAre("/bin/chief chief 127.0.0.1:0", "/bin/chief chief 127.0.0.1:0"));
  WritePort("4000");
  launcher_->Poll();
  EXPECT_THAT(processes_.Running(), ElementsAre("chief", "worker-0"));
}

TEST_F(LauncherTest, GivesUpAProcessThatDiesTooOften) {
  StartAll(1, 2);
  for (int i = 0; i < 2; ++i) {
    EndProcess("worker-0", 0, SIGKILL);
    Advance(absl::Seconds(20));
  }
  EndProcess("worker-0", 0, SIGKILL);
  Advance(absl::Seconds(2));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "worker-0 was killed by SIGKILL after 2 restarts");
  EXPECT_EQ(launcher_->outcome()->log_path, "/log/worker-0.log");
}

TEST_F(LauncherTest, ReturnsTheFailedChiefsExitCode) {
  StartAll(1);
  EndProcess("chief", kExitBadConfiguration);
  EndProcess("worker-0", kExitFailed);
  ASSERT_EQ(ExitCode(), kExitBadConfiguration);
  EXPECT_EQ(launcher_->outcome()->message, "chief ended with exit code 2");
  EXPECT_EQ(launcher_->outcome()->log_path, "/log/chief.log");
}

TEST_F(LauncherTest, BlamesTheChiefForAFailureAWorkerSaw) {
  StartAll();
  EndProcess("worker-0", kExitFailed);
  EndProcess("worker-1", kExitFailed);
  EndProcess("chief", kExitFailed);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "chief ended with exit code 1");
}

TEST_F(LauncherTest, EndsTheRunWhenAWorkerFails) {
  StartAll();
  EndProcess("worker-0", kExitBadConfiguration);
  EXPECT_THAT(processes_.signals, IsEmpty());
  Advance(absl::Seconds(2));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "worker-1 TERM"));
  EndProcess("worker-1", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitBadConfiguration);
  EXPECT_EQ(launcher_->outcome()->message, "worker-0 ended with exit code 2");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LauncherTest, FinishesEvenIfAWorkerFailedAtTheEnd) {
  StartAll();
  EndProcess("worker-0", kExitFailed);
  EndProcess("chief", 0);
  EndProcess("worker-1", 0);
  EXPECT_EQ(ExitCode(), 0);
  EXPECT_THAT(said_, ElementsAre("worker-0 ended with exit code 1"));
}

TEST_F(LauncherTest, RestartsNoProcessAfterTheEnd) {
  StartAll();
  EndProcess("chief", 0);
  EndProcess("worker-0", 0, SIGKILL);
  Advance(absl::Seconds(1));
  EXPECT_THAT(processes_.Running(), ElementsAre("worker-1"));
}

TEST_F(LauncherTest, ContinuesWithoutAStoppedWorker) {
  StartAll();
  EndProcess("worker-0", kExitTerminated);
  EXPECT_THAT(said_, ElementsAre("worker-0 was asked to stop; the run continues without it"));
  Advance(absl::Minutes(1));
  EXPECT_THAT(processes_.Running(), ElementsAre("chief", "worker-1"));
  EndProcess("worker-1", 0, SIGTERM);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitTerminated);
  EXPECT_EQ(launcher_->outcome()->message, "no worker is left");
}

TEST_F(LauncherTest, EndsTheRunWhenTheChiefWasStopped) {
  StartAll(1);
  EndProcess("chief", kExitTerminated);
  EXPECT_THAT(processes_.signals, ElementsAre("worker-0 TERM"));
  EndProcess("worker-0", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, StopsTheChiefThenTheWorkers) {
  StartAll();
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  Advance(absl::Seconds(34));
  // The chief notifies its workers.
  EndProcess("worker-0", kExitTerminated);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "worker-1 TERM"));
  EndProcess("worker-1", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitTerminated);
  EXPECT_EQ(launcher_->outcome()->message, "SIGINT was received");
}

TEST_F(LauncherTest, PassesASaveRequestToTheChiefAlone) {
  StartAll();
  launcher_->OnSignal(SIGUSR1);
  launcher_->OnSignal(SIGUSR2);
  EXPECT_THAT(processes_.signals, ElementsAre("chief USR1", "chief USR1"));
  launcher_->OnSignal(SIGTERM);
  launcher_->OnSignal(SIGUSR1);
  EXPECT_THAT(processes_.signals, ElementsAre("chief USR1", "chief USR1", "chief TERM"));
  EndProcess("chief", kExitTerminated);
  EndProcess("worker-0", kExitTerminated);
  EndProcess("worker-1", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, SaveRequestWithoutAChiefDoesNothing) {
  StartAll();
  EndProcess("chief", 0, SIGKILL);
  launcher_->OnSignal(SIGUSR1);
  EXPECT_THAT(processes_.signals, ElementsAre());
  EXPECT_FALSE(launcher_->outcome().has_value());
}

TEST_F(LauncherTest, KillsAWorkerFiveSecondsAfterTheStop) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  EndProcess("chief", kExitTerminated);
  EXPECT_EQ(launcher_->next_poll(), clock_.Now() + absl::Seconds(5));
  Advance(absl::Seconds(5));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "worker-0 TERM", "worker-0 KILL"));
  EndProcess("worker-0", 0, SIGKILL);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, StopsWorkersImmediatelyWithoutAChief) {
  StartAll();
  EndProcess("chief", 0, SIGKILL);
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("worker-0 TERM", "worker-1 TERM"));
  EndProcess("worker-0", kExitTerminated);
  EndProcess("worker-1", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitRetryable) << "nothing has been saved";
  EXPECT_THAT(launcher_->outcome()->message, HasSubstr("chief was not running"));
  EXPECT_THAT(processes_.Running(), IsEmpty());
}

TEST_F(LauncherTest, FailsWhenTheChiefExceedsItsStopLimit) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  EndProcess("worker-0", kExitTerminated);
  Advance(absl::Seconds(35));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "chief KILL"));
  EndProcess("chief", 0, SIGKILL);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "chief was killed by SIGKILL before its last step was saved");
  EXPECT_EQ(launcher_->outcome()->log_path, "/log/chief.log");
}

TEST_F(LauncherTest, RepeatedStopStillLetsTheChiefSave) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  launcher_->OnSignal(SIGTERM);
  launcher_->OnSignal(SIGHUP);
  Advance(absl::Milliseconds(999));
  launcher_->OnSignal(SIGINT);
  Advance(absl::Seconds(20));
  launcher_->OnSignal(SIGTERM);
  launcher_->OnSignal(SIGHUP);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EXPECT_THAT(said_, ElementsAre("stopping: the chief saves a checkpoint; Ctrl-C once more stops at once"));
  EndProcess("chief", kExitTerminated);
  EndProcess("worker-0", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, SecondInterruptKillsAllAndNamesLoss) {
  StartAll(1);
  launcher_->OnSignal(SIGTERM);
  Advance(absl::Seconds(1));
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "chief KILL", "worker-0 KILL"));
  EndProcess("chief", 0, SIGKILL);
  EndProcess("worker-0", 0, SIGKILL);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "chief was killed by SIGKILL before its last step was saved");
}

TEST_F(LauncherTest, InterruptAfterTheSaveLosesNothing) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  EndProcess("chief", kExitTerminated);
  Advance(absl::Seconds(1));
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "worker-0 TERM", "worker-0 KILL"));
  EndProcess("worker-0", 0, SIGKILL);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, SaysWhenTheChiefIsKilledWhileItSaves) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  EndProcess("chief", 0, SIGKILL);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM", "worker-0 TERM"));
  EndProcess("worker-0", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "chief was killed by SIGKILL before its last step was saved");
}

TEST_F(LauncherTest, ReportsAFailedLastCheckpoint) {
  for (const int code : {kExitFailed, kExitRetryable}) {
    StartAll(0);
    launcher_->OnSignal(SIGINT);
    EndProcess("chief", code);
    ASSERT_EQ(ExitCode(), code);
    EXPECT_EQ(launcher_->outcome()->message,
              absl::StrCat("chief ended with exit code ", code, " before its last step was saved"));
  }
}

TEST_F(LauncherTest, LastStepBeforeTheStopFinishesTheRun) {
  StartAll(1);
  launcher_->OnSignal(SIGINT);
  EndProcess("chief", 0);
  EndProcess("worker-0", 0);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, StopEndsAFailedRunSooner) {
  StartAll();
  EndProcess("worker-0", kExitBadConfiguration);
  EXPECT_THAT(processes_.signals, IsEmpty());
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  EndProcess("worker-1", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitBadConfiguration);
  EXPECT_EQ(launcher_->outcome()->message, "worker-0 ended with exit code 2");
}

TEST_F(LauncherTest, DoesNotStopASavingChiefTwice) {
  StartAll();
  EndProcess("worker-0", kExitFailed);
  Advance(absl::Seconds(2));
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitFailed);
  EXPECT_THAT(said_, Contains("chief ended with exit code 1 before its last step was saved"));
  EndProcess("worker-1", kExitTerminated);
  EXPECT_EQ(launcher_->outcome()->message, "worker-0 ended with exit code 1");
}

TEST_F(LauncherTest, StopsAFinishedRunsWorkersImmediately) {
  StartAll(1);
  EndProcess("chief", 0);
  EXPECT_THAT(processes_.signals, IsEmpty());
  launcher_->OnSignal(SIGINT);
  EXPECT_THAT(processes_.signals, ElementsAre("worker-0 TERM"));
  EndProcess("worker-0", kExitTerminated);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, FailsWhenAProgramCannotBeStarted) {
  Make();
  processes_.missing_program = "/bin/chief";
  EXPECT_EQ(launcher_->Start().message(), "cannot start /bin/chief");

  processes_.missing_program = "/bin/worker";
  ASSERT_TRUE(launcher_->Start().ok());
  WritePort("4000");
  launcher_->Poll();
  EndProcess("chief", 0, SIGKILL);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_EQ(launcher_->outcome()->message, "worker-0 cannot start /bin/worker");
}

TEST_F(LauncherTest, FailsWhenThePortFileHoldsNoPort) {
  Make();
  ASSERT_TRUE(launcher_->Start().ok());
  WritePort("none\n");
  launcher_->Poll();
  Advance(absl::Seconds(2));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  ASSERT_EQ(ExitCode(), kExitFailed);
  EXPECT_THAT(launcher_->outcome()->message, HasSubstr("wrote \"none\", not a port, to /log/port"));
}

TEST_F(LauncherTest, StartsTheChiefOfAWorkerDeclaredRun) {
  StartProgram();
  EXPECT_THAT(processes_.commands,
              ElementsAre("/bin/worker worker-0 file:/run/address", "/bin/worker worker-1 file:/run/address"));
  EXPECT_LE(launcher_->next_poll(), clock_.Now() + absl::Milliseconds(50));
  Declare();
  EXPECT_EQ(processes_.commands.back(), "/bin/chief chief 127.0.0.1:0");
  EXPECT_EQ(launcher_->next_poll(), absl::InfiniteFuture());
  EndProcess("chief", kExitDone);
  Advance(absl::Hours(1));
  EXPECT_THAT(processes_.signals, IsEmpty()) << "a program may go on after the run";
  EndProcess("worker-0", kExitDone);
  EndProcess("worker-1", kExitDone);
  EXPECT_EQ(ExitCode(), kExitDone);
}

TEST_F(LauncherTest, AProgramThatDeclaresNothingFails) {
  StartProgram();
  EndProcess("worker-0", kExitDone);
  EXPECT_EQ(ExitCode(), -1);
  EndProcess("worker-1", kExitDone);
  EXPECT_EQ(ExitCode(), kExitFailed);
  EXPECT_THAT(launcher_->outcome()->message, HasSubstr("worker-1 ended without declaring a run"));
}

TEST_F(LauncherTest, AFailureAfterTheRunIsTheOutcome) {
  StartProgram(1);
  Declare();
  EndProcess("chief", kExitDone);
  EndProcess("worker-0", 1);
  EXPECT_EQ(ExitCode(), kExitFailed);
  EXPECT_THAT(launcher_->outcome()->message, HasSubstr("after the end of the run"));
}

TEST_F(LauncherTest, StopsTheChiefThatAllProgramsLeft) {
  StartProgram(1);
  Declare();
  EndProcess("worker-0", kExitDone);
  EXPECT_THAT(processes_.signals, IsEmpty());
  Advance(absl::Seconds(3));
  EXPECT_THAT(processes_.signals, ElementsAre("chief TERM"));
  EndProcess("chief", kExitTerminated);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, StopsProgramsThatHaveDeclaredNothing) {
  StartProgram(1);
  launcher_->OnSignal(SIGTERM);
  EXPECT_THAT(processes_.signals, ElementsAre("worker-0 TERM"));
  EndProcess("worker-0", 0, SIGTERM);
  EXPECT_EQ(ExitCode(), kExitTerminated);
}

TEST_F(LauncherTest, RestartsWorkersOfAChiefElsewhere) {
  StartWorkersAlone(2);
  EXPECT_THAT(processes_.commands,
              ElementsAre("/bin/worker worker-0 grpc://chief:2222", "/bin/worker worker-1 grpc://chief:2222"));
  EndProcess("worker-1", 0, SIGKILL);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("worker-1 was killed by SIGKILL; starting it again (1 of 10)")));
  Advance(absl::Seconds(1));
  EXPECT_THAT(processes_.Running(), ElementsAre("worker-0", "worker-1"));
  EndProcess("worker-0", 0);
  EXPECT_EQ(ExitCode(), -1);
  EndProcess("worker-1", 0);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, StopsWorkersOfAChiefElsewhere) {
  StartWorkersAlone(1);
  launcher_->OnSignal(SIGUSR1);
  launcher_->OnSignal(SIGTERM);
  EXPECT_THAT(processes_.signals, ElementsAre("worker-0 TERM"));
  EndProcess("worker-0", 143);
  EXPECT_EQ(ExitCode(), 143);
}

TEST_F(LauncherTest, ReportsHowWorkersOfARemoteChiefFail) {
  StartWorkersAlone(2);
  EndProcess("worker-0", 2);
  EXPECT_EQ(ExitCode(), -1);
  Advance(absl::Seconds(2));
  EXPECT_THAT(processes_.signals, ElementsAre("worker-1 TERM"));
  EndProcess("worker-1", 143);
  EXPECT_EQ(ExitCode(), 2);
  EXPECT_EQ(launcher_->outcome()->log_path, "");

  StartWorkersAlone(1, 0);
  EndProcess("worker-0", 138);
  EXPECT_EQ(ExitCode(), 138);
}

TEST_F(LauncherTest, ServesRemoteWorkersAfterOwnOnesStop) {
  other_workers_ = true;
  StartAll(1);
  EndProcess("worker-0", 143);
  EXPECT_EQ(ExitCode(), -1);
  EXPECT_THAT(processes_.signals, IsEmpty());
  EndProcess("chief", 0);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, ServesRemoteWorkersAfterProgramEnds) {
  other_workers_ = true;
  StartProgram(1);
  Declare();
  EndProcess("worker-0", 0);
  Advance(absl::Minutes(1));
  EXPECT_THAT(processes_.signals, IsEmpty());
  EndProcess("chief", 0);
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(LauncherTest, KeepsAChiefWithoutWorkersOfItsOwn) {
  other_workers_ = true;
  StartAll(0);
  EndProcess("chief", 0, SIGKILL);
  Advance(absl::Seconds(1));
  EXPECT_THAT(processes_.Running(), ElementsAre("chief"));
  EndProcess("chief", 0);
  EXPECT_EQ(ExitCode(), 0);
}

}  // namespace
}  // namespace lockstep
