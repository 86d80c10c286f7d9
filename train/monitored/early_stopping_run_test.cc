// Tests that a hook stops a run at the same step, with the same weights, even if the chief is killed.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/hooks/stop/early_stopping_hook.h"
#include "lockstep/train/session/chief_session.h"

namespace lockstep::train {
namespace {

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  optimizer { sgd {} learning_rate { initial: 0.2 } }
  input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 noise: 4 } } batch_size: 4 }
  training { replicas_to_aggregate: 2 unbounded: true }
  # The disk of a chief that is killed takes nothing more.
  checkpoint { every_steps: 5 stop_seconds: 0.01 }
)";

class EarlyStoppingRunTest : public ::testing::Test {
 protected:
  struct End {
    int64_t step = 0;
    double best = 0;
    std::string digest;
  };

  // Runs one chief, which is killed after `runs` runs. Returns true if it reaches the end of the run.
  bool Live(FileSystem* disk, int runs, End* end) {
    FaultyFileSystem fs(disk);
    EarlyStoppingOptions patience;
    patience.patience = 8;
    const auto hook = EarlyStoppingHook::Create(patience).value();
    EXPECT_TRUE(hook->Begin().ok());
    SessionOptions options;
    options.op = op_;
    options.logdir = "run";
    options.fs = &fs;
    options.program = "early_stopping";
    const auto chief = ChiefSession::Open(options).value();
    HookedSession::Options hooks;
    hooks.hooks = {hook.get()};
    hooks.gate = chief.get();
    const auto session = HookedSession::Open(chief.get(), hooks).value();
    for (int i = 0; i < runs && !session->ShouldStop(); ++i) {
      const auto result = session->Run(op_);
      EXPECT_TRUE(result.ok()) << result.status();
      if (result.ok()) end->step = result->global_step;
    }
    if (!session->ShouldStop()) {
      fs.KillAfter(0);
      return false;
    }
    EXPECT_TRUE(session->Close().ok());
    end->best = hook->best().value().value_or(-1);
    return true;
  }
  // Trains with a chief that is killed after every `runs` runs.
  End Train(int runs) {
    MemoryFileSystem disk;
    End end;
    int lives = 1;
    while (!Live(&disk, runs, &end)) {
      disk.DropUnsyncedData();
      ++lives;
    }
    EXPECT_TRUE(runs > 1000 || lives > 1) << "nothing was killed";
    const auto reader = BundleReader::Open(&disk, absl::StrCat("run/model.ckpt-", end.step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (reader.ok()) end.digest = CheckpointDigest(**reader).value();
    return end;
  }

  const TrainOp op_ = CreateTrainOp(std::string(kRun)).value();
};

TEST_F(EarlyStoppingRunTest, EndsAtOneStepHoweverOftenTheChiefIsKilled) {
  const End undisturbed = Train(/*runs=*/100000);
  EXPECT_GT(undisturbed.step, 12);
  for (const int runs : {6, 7, 11}) {
    const End killed = Train(runs);
    EXPECT_EQ(killed.step, undisturbed.step);
    EXPECT_EQ(killed.best, undisturbed.best);
    EXPECT_EQ(killed.digest, undisturbed.digest);
  }
}

}  // namespace
}  // namespace lockstep::train
