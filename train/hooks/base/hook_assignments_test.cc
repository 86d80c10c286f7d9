// Tests that a hook that computes new variables and a new learning rate from the old ones makes each change once, even
// if the chief is killed or stopped.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/session/chief_session.h"

namespace lockstep::train {
namespace {

constexpr int kLastStep = 12;
constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  optimizer { sgd {} learning_rate { initial: 0.2 } }
  input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 noise: 4 } } batch_size: 4 }
  training { replicas_to_aggregate: 2 steps: 12 }
  checkpoint { stop_seconds: 0.01 }
)";

enum class Where { kBeforeRun, kAfterRun };
enum class End { kNone, kKilledInTheCallback, kSavedAndKilled, kKilledLater, kStoppedInTheCallback };

// A hook that halves the weights and the learning rate at some steps.
class HalvingHook : public Hook {
 public:
  // After each change of the learning rate and after each Assign, calls `then` with the step.
  HalvingHook(Where where, std::function<void(int64_t)> then) : where_(where), then_(std::move(then)) {}

  std::string name() const override { return "halving"; }
  absl::Status BeforeRun(RunContext& context) override {
    return where_ == Where::kBeforeRun ? Halve(context.global_step(), &context.session()) : absl::OkStatus();
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    return where_ == Where::kAfterRun ? Halve(values.result.global_step, &context.session()) : absl::OkStatus();
  }

 private:
  absl::Status Halve(int64_t step, Session* session) {
    if (step != 4 && step != 7) return absl::OkStatus();
    ASSIGN_OR_RETURN(ReadResult read, session->Read({"logits/kernel"}));
    std::vector<float> values;
    for (const float value : read.values[0].value.flat<float>()) values.push_back(value / 2);
    ASSIGN_OR_RETURN(const config::v1::RunSpec settings, session->Settings());
    RETURN_IF_ERROR(session->ChangeLearningRate(settings.optimizer().learning_rate().initial() / 2));
    then_(step);
    RETURN_IF_ERROR(session->Assign({NamedFloats("logits/kernel", {4, 3}, values).value()}));
    then_(step);
    return absl::OkStatus();
  }

  const Where where_;
  const std::function<void(int64_t)> then_;
};

class HookAssignmentsTest : public ::testing::TestWithParam<std::tuple<Where, End>> {
 protected:
  // Runs one chief, which ends in callback number `last_callback`. Returns true if it reaches the end of the run.
  bool Live(FileSystem* disk, End end, int last_callback) {
    FaultyFileSystem fs(disk);
    SessionOptions options;
    options.op = op_;
    options.logdir = "run";
    options.fs = &fs;
    options.program = "halving";
    std::unique_ptr<ChiefSession> chief = ChiefSession::Open(options).value();
    int callbacks = 0;
    bool killed = false;
    HalvingHook hook(std::get<Where>(GetParam()), [&](int64_t) {
      if (++callbacks != last_callback) return;
      if (end == End::kSavedAndKilled) {
        EXPECT_TRUE(chief->Save().ok());
      }
      killed = end == End::kKilledInTheCallback || end == End::kSavedAndKilled;
      if (killed) fs.KillAfter(0);
      if (end != End::kStoppedInTheCallback) return;
      const absl::Status stopped = chief->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    });
    HookedSession::Options hooks;
    hooks.hooks = {&hook};
    hooks.gate = chief.get();
    const auto session = HookedSession::Open(chief.get(), hooks).value();
    int64_t step = 0;
    while (step < kLastStep) {
      const auto result = session->Run(op_);
      if (!result.ok() || killed) return false;
      step = result->global_step;
      if (end == End::kKilledLater && (step == 6 || step == 9)) {
        fs.KillAfter(0);
        return false;
      }
    }
    EXPECT_TRUE(session->Close().ok());
    return true;
  }
  // Runs `lives` chiefs, one after another: the last one finishes the run, and the others end as specified by `end`.
  // Returns the digest of the run's values.
  std::string Train(End end, int lives) {
    MemoryFileSystem disk;
    for (int life = 1; life < lives; ++life) {
      EXPECT_FALSE(Live(&disk, end, /*last_callback=*/life));
      if (end != End::kStoppedInTheCallback) disk.DropUnsyncedData();
    }
    EXPECT_TRUE(Live(&disk, End::kNone, /*last_callback=*/0));
    const v1::RunRecord record = ReadRunRecord(&disk, "run").value().value();
    EXPECT_EQ(record.assignment_size(), 2);
    EXPECT_EQ(record.change_size(), 2);
    EXPECT_FLOAT_EQ(record.config().optimizer().learning_rate().initial(), 0.05f);
    return CheckpointDigest(*BundleReader::Open(&disk, absl::StrCat("run/model.ckpt-", kLastStep)).value()).value();
  }

  const TrainOp op_ = CreateTrainOp(kRun).value();
};

INSTANTIATE_TEST_SUITE_P(Ends, HookAssignmentsTest,
                         ::testing::Combine(::testing::Values(Where::kBeforeRun, Where::kAfterRun),
                                            ::testing::Values(End::kKilledInTheCallback, End::kSavedAndKilled,
                                                              End::kKilledLater, End::kStoppedInTheCallback)));

TEST_P(HookAssignmentsTest, AreMadeOnce) { EXPECT_EQ(Train(std::get<End>(GetParam()), 3), Train(End::kNone, 1)); }

}  // namespace
}  // namespace lockstep::train
