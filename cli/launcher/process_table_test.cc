#include "lockstep/cli/launcher/process_table.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class PosixProcessTableTest : public ::testing::Test {
 protected:
  int Start(const std::string& script) {
    const auto pid = processes_.Start({{"/bin/sh", "-c", script}, log_});
    EXPECT_TRUE(pid.ok()) << pid.status();
    return pid.value_or(0);
  }
  // Blocks until a child has ended, but leaves its exit for NextExit to return.
  ProcessExit AwaitExit() {
    siginfo_t info;
    EXPECT_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    return processes_.NextExit().value_or(ProcessExit{});
  }
  std::string Log() { return ReadFile(FileSystem::Real(), log_).value_or("no log"); }

  const std::string log_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".log");
  PosixProcessTable processes_;
};

TEST_F(PosixProcessTableTest, ReturnsExitCodeAndAppendsOutputToLog) {
  const int pid = Start("echo out; echo err >&2; exit 7");
  ProcessExit exit = AwaitExit();
  EXPECT_EQ(exit.pid, pid);
  EXPECT_EQ(exit.exit_code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(ExitText(exit), "ended with exit code 7");
  Start("echo again");
  AwaitExit();
  EXPECT_EQ(Log(), "out\nerr\nagain\n");
  EXPECT_FALSE(processes_.NextExit().has_value());
}

TEST_F(PosixProcessTableTest, ReportsTheSignalThatKilledAProcess) {
  const int pid = Start("read line || true; exec sleep 1000");
  EXPECT_FALSE(processes_.NextExit().has_value());
  processes_.Signal(pid, SIGKILL);
  const ProcessExit exit = AwaitExit();
  EXPECT_EQ(exit.pid, pid);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(ExitText(exit), "was killed by SIGKILL");
}

TEST_F(PosixProcessTableTest, KillsTheChildrenOfAChild) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  const auto pid = processes_.Start({{"/bin/sh", "-c", "sleep 1000 & echo started; wait"}, ""});
  dup2(before, STDOUT_FILENO);
  close(before);
  close(ends[1]);
  ASSERT_TRUE(pid.ok()) << pid.status();
  char text[16] = "";
  ASSERT_EQ(read(ends[0], text, sizeof text), 8);
  processes_.Signal(*pid, SIGKILL);
  EXPECT_EQ(AwaitExit().signal, SIGKILL);
  EXPECT_EQ(read(ends[0], text, sizeof text), 0) << "no process has the pipe any more";
  close(ends[0]);
}

TEST_F(PosixProcessTableTest, ChildHasOwnGroupAndNoBlockedSignals) {
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const int pid = Start("exec cat /proc/self/stat /proc/self/status");
  sigprocmask(SIG_SETMASK, &before, nullptr);
  AwaitExit();
  const std::vector<std::string> stat = absl::StrSplit(Log(), absl::MaxSplits(' ', 5));
  ASSERT_EQ(stat.size(), 6);
  EXPECT_EQ(stat[0], absl::StrCat(pid));
  EXPECT_EQ(stat[4], absl::StrCat(pid)) << "its process group";
  EXPECT_THAT(Log(), HasSubstr("SigBlk:\t0000000000000000\n"));
}

TEST_F(PosixProcessTableTest, ForegroundChildSharesGroupAndInput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "typed ", 6), 6);
  close(ends[1]);
  const int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  const auto pid = processes_.Start({{"/bin/sh", "-c", "cat; exec cat /proc/self/stat"}, log_, /*foreground=*/true});
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
  ASSERT_TRUE(pid.ok()) << pid.status();
  AwaitExit();
  const std::vector<std::string> words = absl::StrSplit(Log(), absl::MaxSplits(' ', 6));
  ASSERT_EQ(words.size(), 7);
  EXPECT_EQ(words[0], "typed");
  EXPECT_EQ(words[1], absl::StrCat(*pid));
  EXPECT_EQ(words[5], absl::StrCat(getpgrp()));
}

TEST_F(PosixProcessTableTest, NamesTheProgramThatCannotBeStarted) {
  const auto pid = processes_.Start({{"/no/such/program"}, log_});
  EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(pid.status().message()), HasSubstr("/no/such/program"));
  EXPECT_FALSE(processes_.NextExit().has_value());
}

TEST_F(PosixProcessTableTest, NamesTheLogThatCannotBeWritten) {
  const auto pid = processes_.Start({{"/bin/true"}, "/no/such/directory/x.log"});
  EXPECT_THAT(std::string(pid.status().message()), HasSubstr("/no/such/directory/x.log"));
}

TEST_F(PosixProcessTableTest, ChildWithoutALogInheritsTheOutput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  const auto pid = processes_.Start({{"/bin/sh", "-c", "echo hello"}, ""});
  dup2(before, STDOUT_FILENO);
  close(before);
  close(ends[1]);
  ASSERT_TRUE(pid.ok()) << pid.status();
  AwaitExit();
  char text[16] = "";
  EXPECT_EQ(read(ends[0], text, sizeof text), 6);
  EXPECT_EQ(std::string(text), "hello\n");
  close(ends[0]);
}

TEST_F(PosixProcessTableTest, EndsItsChildrenWhenTheSupervisorDies) {
  // Runs a supervisor that starts a child, which prints its id. The supervisor is then killed.
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    PosixProcessTable own;
    const auto pid = own.Start({{"/bin/sleep", "1000"}, log_});
    const int child = pid.value_or(0);
    if (write(pipe_ends[1], &child, sizeof child) != sizeof child) _exit(1);
    pause();
    _exit(0);
  }
  int child = 0;
  ASSERT_EQ(read(pipe_ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  ASSERT_EQ(kill(supervisor, SIGKILL), 0);
  ASSERT_EQ(waitpid(supervisor, nullptr, 0), supervisor);
  close(pipe_ends[1]);
  // Waits until the child has exited on its own. By then its id is free, or it is a zombie of another parent.
  const std::string stat = absl::StrCat("/proc/", child, "/stat");
  for (;;) {
    const auto text = ReadFile(FileSystem::Real(), stat);
    if (!text.ok() || text->find(") Z ") != std::string::npos || text->empty()) break;
    sched_yield();
  }
  close(pipe_ends[0]);
}

}  // namespace
}  // namespace lockstep
