// Tests the exit code of a program that runs in its own process.
#include "lockstep/train/program/program.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/supervisor/supervisor.h"
#include "lockstep/train/testing/hanging_model.h"

namespace lockstep::train {
namespace {

using ::testing::ExitedWithCode;

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  using Body = std::function<absl::Status(Program&, SessionOptions)>;

  // Runs `body` as a worker's main function would, and ends the process with the program's exit code. Writes a line to
  // stderr just before that.
  [[noreturn]] static void Main(const Body& body) {
    char name[] = "program", master[] = "--master=grpc://127.0.0.1:1", index[] = "--task_index=0";
    char* argv[] = {name, master, index, nullptr};
    Main(3, argv, body);
  }
  // Runs `body` as a chief's main function would, and ends the process with the program's exit code.
  [[noreturn]] static void ChiefMain(const Body& body) {
    char name[] = "program";
    char* argv[] = {name, nullptr};
    Main(1, argv, body);
  }

 private:
  [[noreturn]] static void Main(int argc, char** argv, const Body& body) {
    Program program(argc, argv, "A program.");
    const int exit_code = program.Run([&] {
      const TrainOp op = CreateTrainOp(R"(
        model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
        optimizer { sgd {} learning_rate { initial: 0.05 } }
        input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
        training { replicas_to_aggregate: 1 steps: 10 })")
                             .value();
      SessionOptions options = program.Options(op);
      options.max_wait = absl::ZeroDuration();
      return body(program, std::move(options));
    });
    std::fprintf(stderr, "at the end of main\n");
    std::exit(exit_code);
  }
};

TEST_F(ProgramTest, StepsReplaceTheConfiguredLength) {
  const auto main = [] {
    char name[] = "program", steps[] = "--steps=7";
    char* argv[] = {name, steps, nullptr};
    Program program(2, argv, "A program.");
    std::exit(program.Run([&]() -> absl::Status {
      config::v1::RunSpec spec;
      spec.mutable_training()->set_unbounded(true);
      spec.mutable_training()->set_additional_steps(3);
      const config::v1::TrainingConfig training = program.WithFlags(spec).training();
      std::fprintf(stderr, "training: %s\n", training.ShortDebugString().c_str());
      return absl::OkStatus();
    }));
  };
  EXPECT_EXIT(main(), ExitedWithCode(0), "training: steps: 7\n");
}

TEST_F(ProgramTest, AWorkerWhoseChiefIsAbsentMayBeStartedAgain) {
  EXPECT_EXIT(Main([](Program&, SessionOptions session) -> absl::Status {
                MonitoredTrainingOptions options;
                options.session = std::move(session);
                options.max_wait = absl::ZeroDuration();
                return WithSession(MonitoredTrainingSession(std::move(options)),
                                   [](MonitoredSession&) { return absl::OkStatus(); });
              }),
              ExitedWithCode(kExitRetryable), "at the end of main");
  EXPECT_EXIT(Main([](Program&, SessionOptions session) -> absl::Status {
                SupervisorOptions options;
                options.session = std::move(session);
                auto supervisor = Supervisor::Create(std::move(options));
                Supervisor::PrepareOptions prepare;
                prepare.max_wait = absl::ZeroDuration();
                return (*supervisor)->ManagedSession([](Session&) { return absl::OkStatus(); }, prepare);
              }),
              ExitedWithCode(kExitRetryable), "at the end of main");
}

TEST_F(ProgramTest, NothingIsDestroyedAfterADiskThatHangs) {
  EXPECT_EXIT(Main([](Program&, SessionOptions) {
                std::atexit([] { std::fprintf(stderr, "destroyed\n"); });
                return AsDiskHang(absl::DeadlineExceededError("the disk has not taken step 7"));
              }),
              ExitedWithCode(kExitFailed), "has not taken step 7[^\n]*\n$");
}

// Imitates a stop while a large checkpoint is being restored, when there is nothing to save.
TEST_F(ProgramTest, AStopBeforeThereIsAChiefLosesNothing) {
  EXPECT_EXIT(ChiefMain([](Program& program, SessionOptions session) {
                static auto* const hanging = new HangingFileSystem(new MemoryFileSystem);
                hanging->Hang("logdir");
                session.fs = hanging;
                session.logdir = "logdir";
                program.stop()->Allow(absl::ZeroDuration());  // the program ends immediately
                const auto stopping = Executor::Threads()->Start("stop", [] {
                  hanging->AwaitHanging();
                  kill(getpid(), SIGTERM);
                });
                return OpenSession(std::move(session)).status();
              }),
              ExitedWithCode(kExitTerminated), "not ended 0 after it was told to");
}

TEST_F(ProgramTest, AUserSignalSavesAndTheBodyContinues) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    EXPECT_EXIT(ChiefMain([signal](Program&, SessionOptions session) -> absl::Status {
                  MemoryFileSystem fs;
                  session.fs = &fs;
                  session.logdir = "logdir";
                  session.op.spec.mutable_training()->set_steps(1000000000);
                  const TrainOp op = session.op;
                  const auto opened = OpenSession(std::move(session)).value();
                  for (int i = 0; i < 3; ++i) EXPECT_TRUE(opened->Run(op).ok());
                  kill(getpid(), signal);
                  const auto saved = [&fs] {
                    const auto names = fs.ListDirectory("logdir").value();
                    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
                      return absl::StartsWith(name, "model.ckpt-") && absl::EndsWith(name, ".index") &&
                             name != "model.ckpt-0.index";
                    });
                  };
                  while (!saved()) EXPECT_TRUE(opened->Run(op).ok());
                  EXPECT_TRUE(opened->Run(op).ok());
                  kill(getpid(), SIGTERM);
                  while (opened->Run(op).ok()) {
                  }
                  return opened->Close();
                }),
                ExitedWithCode(kExitTerminated), "saves now, and continues.*saved logdir/model.ckpt-[1-9]");
  }
}

// If a worker in the chief's process hangs in a block, the process ends soon after the save instead of at the stop
// limit.
TEST_F(ProgramTest, AHungWorkerDoesNotOutliveTheSave) {
  EXPECT_EXIT(ChiefMain([](Program& program, SessionOptions session) -> absl::Status {
                program.stop()->Allow(absl::Seconds(30));
                MemoryFileSystem fs;
                session.fs = &fs;
                session.logdir = "logdir";
                session.op.spec.mutable_training()->set_steps(1000000000);
                session.op.transform_model = [](std::unique_ptr<Model> model) {
                  return absl::StatusOr<std::unique_ptr<Model>>(
                      std::make_unique<HangingModel>(std::move(model), /*blocks=*/10));
                };
                const TrainOp op = session.op;
                const auto opened = OpenSession(std::move(session)).value();
                while (opened->Run(op).ok()) {
                }
                return opened->Close();
              }),
              ExitedWithCode(kExitTerminated), "the last step is saved; a worker of this process hangs");
}

TEST_F(ProgramTest, ABodyThatHangsAfterTheSaveLosesNothing) {
  EXPECT_EXIT(ChiefMain([](Program& program, SessionOptions session) -> absl::Status {
                program.stop()->Allow(absl::Seconds(1));
                const TrainOp op = session.op;
                const auto opened = OpenSession(std::move(session)).value();
                kill(getpid(), SIGTERM);
                while (opened->Run(op).ok()) {
                }
                while (true) pause();
              }),
              ExitedWithCode(kExitTerminated), "not ended 1s after it was told to");
}

TEST_F(ProgramTest, AStopOfAChiefThatDoesNotEndMayLoseSomething) {
  EXPECT_EXIT(ChiefMain([](Program& program, SessionOptions session) {
                static auto* const hanging = new HangingFileSystem(new MemoryFileSystem);
                hanging->Hang("model.ckpt");
                session.fs = hanging;
                session.logdir = "logdir";
                const auto opened = OpenSession(std::move(session));
                program.stop()->Allow(absl::ZeroDuration());
                kill(getpid(), SIGTERM);
                while (true) pause();
                return opened.status();
              }),
              ExitedWithCode(kExitFailed), "not ended 0 after it was told to");
}

}  // namespace
}  // namespace lockstep::train
