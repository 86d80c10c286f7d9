// Tests `lockstep run` with real processes.
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/checkpoint/inspect.h"
#include "lockstep/common/base/process/process.h"

namespace lockstep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kConfig[] = R"(
  model {
    layer { name: "hidden" dense { units: 64 activation: RELU } }
    layer { name: "logits" dense { units: 3 } }
    loss { softmax_cross_entropy {} }
  }
  input {
    split { name: "train" synthetic { examples: 600 shape: 16 classes: 3 } }
    split { name: "test" synthetic { examples: 150 shape: 16 classes: 3 stream: 1 } }
    batch_size: 8
  }
  optimizer { adam {} learning_rate { initial: 0.01 } }
  training { steps: 300 replicas_to_aggregate: 4 seed: 1 }
  checkpoint { every_steps: 50 })";

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    EXPECT_EQ(fs_->CreateDirectory(directory_), absl::OkStatus());
    EXPECT_EQ(WriteFileAtomically(fs_, config_, kConfig), absl::OkStatus());
  }
  std::string Path(const std::string& name) { return JoinPath(directory_, name); }
  // Returns the exit code of `run`. Its output is in shown_. A process that Start has started continues.
  int Run(const std::vector<std::string>& flags) {
    const int output = output_;
    const int exit_code = Wait(Start(flags));
    output_ = output;
    return exit_code;
  }
  // Starts `run`. Await and Wait read its output.
  pid_t Start(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {program_, "run", config_});
    std::vector<char*> words;
    for (const std::string& flag : flags) words.push_back(const_cast<char*>(flag.c_str()));
    words.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      execv(words[0], words.data());
      _exit(99);
    }
    close(ends[1]);
    output_ = ends[0];
    shown_.clear();
    return pid;
  }
  // Reads more of the output. Returns false at its end.
  bool ReadOutput() {
    char buffer[4096];
    const ssize_t count = read(output_, buffer, sizeof buffer);
    if (count > 0) shown_.append(buffer, count);
    return count > 0;
  }
  // Blocks until the process has printed the text. Returns false if it ended without printing it.
  bool Await(const std::string& text) {
    while (shown_.find(text) == std::string::npos) {
      if (!ReadOutput()) return false;
    }
    return true;
  }
  // Returns the exit code.
  int Wait(pid_t pid) {
    while (ReadOutput()) {
    }
    close(output_);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Returns a child of `parent` whose command line contains `word`, or 0.
  static pid_t ChildOf(pid_t parent, const std::string& word) {
    const std::string path = absl::StrCat("/proc/", parent, "/task/", parent, "/children");
    const std::string children = ReadAll(path);
    std::istringstream stream(children);
    for (pid_t child; stream >> child;) {
      if (ReadAll(absl::StrCat("/proc/", child, "/cmdline")).find(word) != std::string::npos) return child;
    }
    return 0;
  }
  static bool KillChildOf(pid_t parent, const std::string& word) {
    const pid_t child = ChildOf(parent, word);
    return child != 0 && kill(child, SIGKILL) == 0;
  }
  static std::string ReadAll(const std::string& path) {
    std::string text;
    if (FILE* file = fopen(path.c_str(), "r")) {
      char buffer[4096];
      for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
      fclose(file);
    }
    return text;
  }
  static std::string LastLineOf(const std::string& output) {
    const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
    return lines.empty() ? "" : lines.back();
  }
  std::string Digest(const std::string& logdir) {
    std::ostringstream out, err;
    EXPECT_EQ(Inspect(fs_, {"--digest", logdir}, out, err), 0) << err.str();
    return out.str();
  }

  FileSystem* const fs_ = FileSystem::Real();
  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string config_ = JoinPath(directory_, "clusters.textproto");
  const std::string logdir_ = absl::StrCat("--logdir=", JoinPath(directory_, "run"));
  std::string program_ = "cli/lockstep_main";
  // The output of the last process that was started: its file descriptor and the text read so far.
  int output_ = -1;
  std::string shown_;
};

TEST_F(RunCommandTest, TrainsToTheBitsOfOneProcess) {
  EXPECT_EQ(Run({logdir_, "--workers=2"}), 0) << shown_;
  EXPECT_THAT(shown_, HasSubstr("training with 2 workers, 300 steps of 4 slots"));
  EXPECT_THAT(shown_, HasSubstr("finished at step 300 in "));
  EXPECT_THAT(shown_, HasSubstr("test: 150 examples: accuracy "));
  // A worker that starts slowly may find nothing left to do, but one of the workers must have computed the last step.
  EXPECT_THAT(absl::StrCat(ReadAll(Path("run/log/worker-0.log")), ReadAll(Path("run/log/worker-1.log"))),
              HasSubstr("the run is over"));

  EXPECT_EQ(Run({logdir_}), 0) << shown_;
  EXPECT_THAT(shown_, HasSubstr("finished at step 300 already"));

  EXPECT_EQ(Run({absl::StrCat("--logdir=", Path("alone")), "--master="}), 0) << shown_;
  EXPECT_EQ(Digest(Path("run")), Digest(Path("alone")));
}

TEST_F(RunCommandTest, ContinuesIfWorkerAndChiefAreKilled) {
  const pid_t run = Start({logdir_, "--workers=2", "--steps=30000"});
  ASSERT_TRUE(Await("  loss "));
  ASSERT_TRUE(KillChildOf(run, "worker-1"));
  ASSERT_TRUE(Await("worker-1 was killed by SIGKILL; starting it again (1 of 10)"));
  ASSERT_TRUE(KillChildOf(run, "--listen="));
  EXPECT_EQ(Wait(run), 0) << shown_;
  EXPECT_THAT(shown_, HasSubstr("chief was killed by SIGKILL; starting it again (1 of 10)"));
  EXPECT_EQ(Run({absl::StrCat("--logdir=", Path("alone")), "--master=", "--steps=30000"}), 0) << shown_;
  EXPECT_EQ(Digest(Path("run")), Digest(Path("alone")));
}

// An update replaces the file of the running program.
TEST_F(RunCommandTest, RestartsTheChiefAfterAnUpdate) {
  const std::string update = Path("update"), built = std::exchange(program_, Path("program"));
  for (const std::string& copy : {program_, update}) ASSERT_TRUE(std::filesystem::copy_file(built, copy));
  const pid_t run = Start({logdir_, "--steps=30000"});
  ASSERT_TRUE(Await("  loss "));
  std::filesystem::rename(update, program_);
  ASSERT_TRUE(KillChildOf(run, "--listen="));
  EXPECT_EQ(Wait(run), 0) << shown_;
  EXPECT_THAT(shown_, HasSubstr("chief was killed by SIGKILL; starting it again (1 of 10)"));
}

TEST_F(RunCommandTest, SavesACheckpointWhenItIsStopped) {
  const pid_t run = Start({logdir_, "--steps=100000000", "--set=checkpoint.every_steps=0"});
  ASSERT_TRUE(Await("  loss "));
  kill(run, SIGINT);
  EXPECT_EQ(Wait(run), 143) << shown_;
  EXPECT_THAT(shown_, EndsWith("\nstopped: SIGINT was received; the same command resumes from the last checkpoint\n"));
  std::ostringstream out, err;
  EXPECT_EQ(Inspect(fs_, {Path("run")}, out, err), 0) << err.str();
}

TEST_F(RunCommandTest, SaysWhenTheLastStepOfAStopIsNotSaved) {
  const pid_t run = Start({logdir_, "--steps=100000000", "--set=checkpoint.every_steps=0"});
  ASSERT_TRUE(Await("  loss "));
  // After the rename the chief can no longer save.
  ASSERT_EQ(fs_->Rename(Path("run"), Path("moved")), absl::OkStatus());
  kill(run, SIGINT);
  EXPECT_EQ(Wait(run), 1) << shown_;
  EXPECT_THAT(shown_, Not(HasSubstr("the same command resumes")));
  EXPECT_THAT(LastLineOf(shown_),
              StartsWith("lockstep run: chief ended with exit code 1 before its last step was saved"));
}

TEST_F(RunCommandTest, SaysThatAStopDidNotSaveTheLastStep) {
  const pid_t run = Start({logdir_, "--master=", "--steps=100000000", "--set=checkpoint.every_steps=0"});
  ASSERT_TRUE(Await("  loss "));
  ASSERT_EQ(fs_->Rename(Path("run"), Path("moved")), absl::OkStatus());
  kill(run, SIGINT);
  EXPECT_EQ(Wait(run), 1) << shown_;
  EXPECT_THAT(shown_, HasSubstr(", which is not saved: "));
}

TEST_F(RunCommandTest, SavesWhenItsTerminalIsClosed) {
  int terminal = -1;
  const pid_t run = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (run == 0) {
    execl("cli/lockstep_main", "lockstep", "run", config_.c_str(), logdir_.c_str(), "--steps=100000000",
          "--set=checkpoint.every_steps=0", nullptr);
    _exit(99);
  }
  output_ = terminal;
  shown_.clear();
  ASSERT_TRUE(Await("  loss "));
  // All further output of the process is lost.
  close(terminal);
  output_ = -1;
  int status = 0;
  ASSERT_EQ(waitpid(run, &status, 0), run);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
  EXPECT_THAT(ReadAll(Path("run/checkpoint")), Not(HasSubstr("model_checkpoint_path: \"model.ckpt-0\"")));
}

TEST_F(RunCommandTest, WaitsForAKilledRunsChiefToSave) {
  ASSERT_EQ(fs_->CreateDirectory(Path("run")), absl::OkStatus());
  auto chief = fs_->LockFile(Path("run/lock"));
  ASSERT_TRUE(chief.ok()) << chief.status();
  const pid_t run = Start({logdir_});
  ASSERT_TRUE(Await("waiting for another chief, which is still ending in "));
  while (ReadAll(Path("run/log/chief.log")).find("another chief is still ending") == std::string::npos) sched_yield();
  chief->reset();
  EXPECT_EQ(Wait(run), 0) << shown_;
}

TEST_F(RunCommandTest, ShowsTheLogOfTheProcessThatFailed) {
  EXPECT_EQ(Run({logdir_}), 0) << shown_;
  EXPECT_EQ(Run({logdir_, "--steps=400", "--seed=2"}), 2);
  EXPECT_THAT(LastLineOf(shown_), StartsWith("lockstep run: chief ended with exit code 2: the logdir holds a run "));
  EXPECT_THAT(LastLineOf(shown_), HasSubstr("training.seed"));
  EXPECT_THAT(shown_, Not(HasSubstr("saved"))) << "of the run before";
}

TEST_F(RunCommandTest, LeavesALogdirAloneThatAnotherRunUses) {
  const pid_t run = Start({logdir_, "--steps=100000000"});
  ASSERT_TRUE(Await("  loss "));
  EXPECT_EQ(Run({logdir_}), kExitRetryable);
  EXPECT_THAT(shown_, HasSubstr("another lockstep run uses "));
  EXPECT_THAT(shown_, HasSubstr(absl::StrCat("process ", run, " on ", HostName(), " holds it")));
  kill(run, SIGTERM);
  EXPECT_EQ(Wait(run), 143);
}

TEST_F(RunCommandTest, NamesTheProgramThatIsMissing) {
  setenv("LOCKSTEP_WORKER_BINARY", "/no/worker", 1);
  EXPECT_EQ(Run({logdir_}), 1);
  EXPECT_THAT(shown_, HasSubstr("/no/worker"));
}

// Runs a chief and workers directly, with their roles in TF_CONFIG. Their sockets are in a directory with a short path.
TEST_F(RunCommandTest, TfConfigMakesAChiefAndItsWorkers) {
  constexpr char kScript[] = R"sh(
    config="$1"
    export LOCKSTEP_LOGDIR="$2"
    sockets="$(mktemp -d)"
    trap 'rm -rf "${sockets}"' EXIT
    cluster='{"chief": ["unix:'"${sockets}"'/chief"], "worker": ["unix:a", "unix:b"]}'
    as() { echo '{"cluster": '"${cluster}"', "task": {"type": "'"$1"'", "index": '"$2"'}}'; }
    TF_CONFIG="$(as chief 0)" cli/lockstep_main chief "${config}" &
    chief=$!
    TF_CONFIG="$(as worker 1)" cli/lockstep_main worker || exit 10
    wait "${chief}" || exit 11
    TF_CONFIG="$(as chief 0)" cli/lockstep_main worker
    (($? == 2)) || exit 12
    TF_CONFIG="$(as worker 0)" cli/lockstep_main chief "${config}"
    (($? == 2)) || exit 13
    TF_CONFIG='{' cli/lockstep_main worker
    (($? == 2))
  )sh";
  const std::string script = JoinPath(directory_, "cluster.sh");
  ASSERT_EQ(WriteFileAtomically(fs_, script, kScript), absl::OkStatus());
  const int status = system(absl::StrCat("bash '", script, "' '", config_, "' '", Path("run"), "'").c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Run({absl::StrCat("--logdir=", Path("alone")), "--master="}), 0) << shown_;
  EXPECT_EQ(Digest(Path("run")), Digest(Path("alone")));
}

}  // namespace
}  // namespace lockstep
