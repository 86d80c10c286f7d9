// Tests slim's Train, CreateTrainOp and evaluation with real chiefs in this process.
#include <algorithm>
#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/testing/events_of.h"
#include "lockstep/train/evaluation/evaluate_values.h"
#include "lockstep/train/evaluation/model_of.h"
#include "lockstep/train/hooks/stop/early_stopping_hook.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/slim/create_train_op.h"
#include "lockstep/train/slim/evaluation.h"
#include "lockstep/train/slim/learning.h"
#include "lockstep/train/slim/losses.h"
#include "lockstep/train/slim/training.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train::slim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kData[] = R"(
  input { split { name: "train" synthetic { examples: 16 shape: 4 classes: 2 noise: 0.1 } }
          split { name: "test" synthetic { examples: 40 shape: 4 classes: 2 noise: 0.1 } } batch_size: 16 }
)";
constexpr char kLogistic[] = R"(
  model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
)";
constexpr char kTwoLayers[] = R"(
  model { layer { name: "hidden" dense { units: 6 activation: TANH } } layer { name: "logits" dense { units: 2 } }
          loss { softmax_cross_entropy {} } }
)";
constexpr char kBatchNorm[] = R"(
  model { layer { name: "bn" batch_norm { decay: 0.1 } } layer { name: "logits" dense { units: 2 } }
          loss { softmax_cross_entropy {} } }
)";
constexpr char kSgd[] = "sgd {} learning_rate { initial: 1 }";

// Watches the log for a chief's message that it lingers after the end.
class LingerLog : public google::LogSink {
 public:
  LingerLog() { google::AddLogSink(this); }
  ~LingerLog() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    if (absl::StrContains(absl::string_view(message, length), "workers that start within 1h still learn")) said_ = true;
  }
  bool said() const { return said_; }

 private:
  std::atomic<bool> said_{false};
};

// Collects the log lines of CreateTrainOp.
class CreateLog : public google::LogSink {
 public:
  CreateLog() { google::AddLogSink(this); }
  ~CreateLog() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char* file, int, const struct ::tm*, const char* message,
            size_t length) override {
    if (absl::string_view(file) == "create_train_op.cc") lines.emplace_back(message, length);
  }

  std::vector<std::string> lines;
};

class SlimRunTest : public ::testing::Test {
 protected:
  SlimRunTest() {
    options_.session.fs = &fs_;
    options_.save_summaries_secs = absl::ZeroDuration();
  }

  // Runs `op` in `logdir` until step `steps`, and returns the last loss.
  absl::StatusOr<double> Run(const TrainOp& op, int64_t steps, const std::string& logdir = "run") {
    options_.number_of_steps = steps;
    ASSIGN_OR_RETURN(const absl::optional<double> loss, Train(op, logdir, options_));
    return loss ? *loss : absl::StatusOr<double>(absl::NotFoundError("no step ran"));
  }
  absl::StatusOr<TrainOp> MakeOp(const std::string& model, CreateTrainOpOptions create = {},
                                 const std::string& optimizer = kSgd) {
    return CreateTrainOp(absl::StrCat(model, kData), optimizer, std::move(create));
  }
  // Returns the digest after `steps` steps in `logdir`.
  std::string DigestAfter(const TrainOp& op, int64_t steps, const std::string& logdir) {
    const auto loss = Run(op, steps, logdir);
    return loss.ok() ? DigestOf(steps, logdir) : loss.status().ToString();
  }
  std::string DigestOf(int64_t step, const std::string& logdir = "run") {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat(logdir, "/model.ckpt-", step));
    return reader.ok() ? CheckpointDigest(**reader).value() : reader.status().ToString();
  }
  std::vector<float> ValueOf(const std::string& name, int64_t step, const std::string& logdir = "run") {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat(logdir, "/model.ckpt-", step));
    if (!reader.ok()) return {};
    const absl::StatusOr<Tensor> tensor = (*reader)->Read(name);
    if (!tensor.ok()) return {};
    return std::vector<float>(tensor->flat<float>().begin(), tensor->flat<float>().end());
  }
  std::vector<std::string> CheckpointsIn(const std::string& logdir) {
    std::vector<std::string> found;
    const std::vector<std::string> names = fs_.ListDirectory(logdir).value();
    for (const std::string& name : names) {
      if (absl::EndsWith(name, ".index")) found.push_back(name.substr(0, name.size() - 6));
    }
    return found;
  }
  // Returns events such as "START 0" and "loss 1" in the order of the files.
  std::vector<std::string> EventsIn(const std::string& logdir) {
    std::vector<std::string> events;
    const std::vector<std::string> names = fs_.ListDirectory(logdir).value();
    for (const std::string& name : names) {
      if (!absl::StrContains(name, "tfevents")) continue;
      for (std::string& event : EventsOf(&fs_, JoinPath(logdir, name))) events.push_back(std::move(event));
    }
    return events;
  }

  MemoryFileSystem fs_;
  TrainOptions options_;
};

// SLIM-11, CTO-03
TEST_F(SlimRunTest, LearnsAndSavesTheLastStep) {
  const auto loss = Run(*MakeOp(kLogistic), 300);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_LT(*loss, 0.015);
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-300"));
}

// The first script in tf_slim.learning: a model's predictions, their log loss, and a momentum optimizer.
TEST_F(SlimRunTest, LogLossOfSigmoidsIsThatOfTheirLogits) {
  constexpr char kMomentum[] = "momentum { momentum: 0.9 } learning_rate { initial: 0.1 }";
  config::v1::RunSpec model = MakeOp(R"(model { layer { name: "predictions" dense { units: 1 activation: SIGMOID } }
                                                loss { mean_squared_error {} }
                                                regularizer { variables: "kernel" l2: 100 } })")
                                  ->spec;
  model.mutable_model()->clear_loss();
  EXPECT_TRUE(absl::IsInvalidArgument(losses::GetTotalLoss(model).status()));
  losses::LogLoss(&model, {/*weights=*/1, /*epsilon=*/1e-7f, "predictions"});
  EXPECT_EQ(losses::GetTotalLoss(model)->model().regularizer_size(), 1);
  const auto total_loss = losses::GetTotalLoss(model, /*add_regularization_losses=*/false);
  config::v1::OptimizerConfig momentum;
  momentum.mutable_momentum()->set_momentum(0.9f);
  momentum.mutable_learning_rate()->set_initial(0.1f);
  const auto train_op = CreateTrainOp(*total_loss, momentum);
  ASSERT_TRUE(train_op.ok()) << train_op.status();
  const auto loss = Run(*train_op, 50);
  const auto of_logits = Run(*MakeOp(R"(model { layer { name: "predictions" dense { units: 1 } }
                                                loss { sigmoid_cross_entropy {} } })",
                                     {}, kMomentum),
                             50, "logits");
  ASSERT_TRUE(loss.ok() && of_logits.ok()) << loss.status() << of_logits.status();
  EXPECT_LT(*loss, 0.5);
  EXPECT_NEAR(*loss, *of_logits, 1e-4);
}

// SLIM-12
TEST_F(SlimRunTest, WritesNothingWithoutALogdir) {
  const auto loss = Run(*MakeOp(kLogistic), 300, "");
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_LT(*loss, 0.015);
  EXPECT_FALSE(fs_.Exists("model.ckpt-300.index").value());
}

// SLIM-13
TEST_F(SlimRunTest, ResumesAndTakesAtLeastOneStep) {
  const TrainOp op = *MakeOp(kLogistic);
  options_.one_more_step = true;
  for (const int64_t steps : {300, 301, 305}) {
    const auto loss = Run(op, steps);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_LT(*loss, 0.015);
    EXPECT_THAT(CheckpointsIn("run"), Contains(absl::StrCat("model.ckpt-", steps)));
  }
  // As in tf_slim, the limit is checked only after a step, so one more step is taken.
  EXPECT_TRUE(Run(op, 305).ok());
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-306"));
  EXPECT_TRUE(Run(op, 2).ok());
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-307"));
  EXPECT_EQ(DigestOf(307), DigestAfter(op, 307, "at_once"));
}

TEST_F(SlimRunTest, AChiefThatWasKilledComesToTheSameStep) {
  const TrainOp op = *MakeOp(kLogistic);
  options_.one_more_step = true;
  const auto kill_before_the_end = [this] {
    v1::RunRecord record = **ReadRunRecord(&fs_, "run", {});
    record.clear_finished();
    ASSERT_TRUE(WriteRunRecord(&fs_, "run", record).ok());
  };
  ASSERT_TRUE(Run(op, 3).ok());
  kill_before_the_end();
  EXPECT_TRUE(absl::IsNotFound(Run(op, 3).status())) << "it only ends";
  EXPECT_EQ(CheckpointsIn("run").size(), 2u);
  ASSERT_TRUE(Run(op, 3).ok());
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-4"));
  kill_before_the_end();
  EXPECT_TRUE(absl::IsNotFound(Run(op, 3).status()));
  EXPECT_EQ(CheckpointsIn("run").size(), 3u);
}

// A program may be restarted because its evaluation failed after training.
TEST_F(SlimRunTest, ARestartedProgramGetsTheSameWeights) {
  const TrainOp op = *MakeOp(kLogistic);
  ASSERT_TRUE(Run(op, 3).ok());
  const std::string digest = DigestOf(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsNotFound(Run(op, 3).status())) << "no step is taken";
    EXPECT_THAT(CheckpointsIn("run"), ElementsAre("model.ckpt-0", "model.ckpt-3"));
  }
  EXPECT_EQ(DigestOf(3), digest);
}

// Because a hook may lag, the session's state may belong to an earlier step than the checkpoint.
TEST_F(SlimRunTest, ReturnsTheLossOfItsOwnLastStep) {
  const TrainOp op = *MakeOp(kLogistic);
  options_.trace_every_n_steps = 1000;
  std::vector<double> losses;
  for (const int64_t steps : {3, 4, 5, 6}) {
    const auto loss = Run(op, steps);
    ASSERT_TRUE(loss.ok()) << loss.status();
    losses.push_back(*loss);
  }
  for (size_t i = 1; i < losses.size(); ++i) {
    const auto at_once = Run(op, 3 + static_cast<int64_t>(i), absl::StrCat("at_once", i));
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    EXPECT_EQ(losses[i], *at_once) << i;
  }
}

// SLIM-15
TEST_F(SlimRunTest, TheInputEndsTheRun) {
  config::v1::RunSpec spec = MakeOp(kLogistic)->spec;
  spec.mutable_input()->set_epochs(300);
  const TrainOp op = *CreateTrainOp(spec, spec.optimizer());
  const auto loss = Train(op, "run", options_);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-300"));
  EXPECT_TRUE(fs_.Exists("run/model.ckpt-300.data-00000-of-00001").value());
}

// SLIM-19, SLIM-20
TEST_F(SlimRunTest, InitFnSetsValuesOfANewRunAlone) {
  int calls = 0;
  options_.init_fn = [&](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    ++calls;
    return InitialValues{{*NamedFloats("logits/bias", {2}, {7, 8})}, ""};
  };
  const TrainOp op = *MakeOp(kLogistic);
  ASSERT_TRUE(Run(op, 50).ok());
  EXPECT_THAT(ValueOf("logits/bias", 0), ElementsAre(7, 8));
  ASSERT_TRUE(Run(op, 60).ok());
  EXPECT_EQ(calls, 1);
}

// SLIM-21, CTO-11
TEST_F(SlimRunTest, TrainsTheVariablesThatAreNamed) {
  CreateTrainOpOptions subset;
  subset.variables_to_train = {{"logits/bias", "logits/kernel"}};
  const auto some = Run(*MakeOp(kTwoLayers, subset), 50, "some");
  const auto all = Run(*MakeOp(kTwoLayers), 50, "all");
  ASSERT_TRUE(some.ok() && all.ok()) << some.status() << all.status();
  EXPECT_LT(*all, *some);
  EXPECT_EQ(ValueOf("hidden/kernel", 50, "some"), ValueOf("hidden/kernel", 0, "some"));
  EXPECT_NE(ValueOf("logits/kernel", 50, "some"), ValueOf("logits/kernel", 0, "some"));
  EXPECT_NE(ValueOf("hidden/kernel", 50, "all"), ValueOf("hidden/kernel", 0, "all"));
}

// CTO-09
TEST_F(SlimRunTest, RefusesToTrainWhatIsNotTrainable) {
  CreateTrainOpOptions wrong;
  wrong.variables_to_train = {{"bn/moving_mean"}};
  const auto loss = Run(*MakeOp(kBatchNorm, wrong), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(loss.status())) << loss.status();
  EXPECT_THAT(std::string(loss.status().message()), HasSubstr("variables_to_train: bn/moving_mean"));
}

// CTO-01, CTO-02, CTO-07
TEST_F(SlimRunTest, RunsTheUpdateOpsThatAreNamed) {
  CreateTrainOpOptions none, mean;
  none.update_ops = std::vector<std::string>();
  mean.update_ops = {{"bn/moving_mean"}};
  const std::string still = "sgd {} learning_rate { initial: 0.0001 }";
  ASSERT_TRUE(Run(*MakeOp(kBatchNorm, {}, still), 10, "all").ok());
  ASSERT_TRUE(Run(*MakeOp(kBatchNorm, mean, still), 10, "mean").ok());
  ASSERT_TRUE(Run(*MakeOp(kBatchNorm, none, still), 10, "none").ok());
  EXPECT_THAT(ValueOf("bn/moving_mean", 10, "none"), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(ValueOf("bn/moving_variance", 10, "none"), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(ValueOf("bn/moving_mean", 10, "mean"), ValueOf("bn/moving_mean", 10, "all"));
  EXPECT_NE(ValueOf("bn/moving_mean", 10, "mean"), ValueOf("bn/moving_mean", 10, "none"));
  EXPECT_THAT(ValueOf("bn/moving_variance", 10, "mean"), ElementsAre(1, 1, 1, 1));
  EXPECT_NE(ValueOf("bn/moving_variance", 10, "all"), ValueOf("bn/moving_variance", 10, "none"));
  // With a decay of 0.1, the moving mean reaches the batch's mean after ten steps on one batch. Ten more steps change
  // nothing.
  ASSERT_TRUE(Run(*MakeOp(kBatchNorm, {}, still), 20, "all").ok());
  const std::vector<float> ten = ValueOf("bn/moving_mean", 10, "all"), twenty = ValueOf("bn/moving_mean", 20, "all");
  ASSERT_EQ(ten.size(), 4u);
  for (size_t i = 0; i < ten.size(); ++i) EXPECT_NEAR(ten[i], twenty[i], 1e-6);
}

TEST_F(SlimRunTest, RefusesAnUpdateOpThatIsNotThere) {
  CreateTrainOpOptions wrong;
  wrong.update_ops = {{"bn/moving_median"}};
  EXPECT_THAT(std::string(Run(*MakeOp(kBatchNorm, wrong), 1).status().message()),
              HasSubstr("update_ops: bn/moving_median"));
}

TEST_F(SlimRunTest, SummariesOfGradientsDoNotChangeTheWeights) {
  options_.save_summaries_secs = absl::Seconds(600);
  for (const char* clip : {"by_norm: 0.5", "by_norm: 0.1", "by_value: 0.05", "by_global_norm: 0.2"}) {
    const std::string optimizer =
        absl::StrCat(kSgd, "clip { ", clip, R"( } multipliers { variables: "bias" factor: 2 })");
    CreateTrainOpOptions numbers, functions, summarized;
    numbers.gradient_multipliers = {{"logits/kernel", 3.0f}};
    numbers.clip_gradient_norm = 0.25;
    summarized = numbers;
    summarized.summarize_gradients = true;
    functions = numbers;
    functions.gradient_multipliers["logits/kernel"] = [](int64_t) { return 3.0f; };
    const auto digest = [&](const CreateTrainOpOptions& create, const std::string& name) {
      return DigestAfter(*MakeOp(kLogistic, create, optimizer), 20, absl::StrCat(name, clip));
    };
    const std::string expected = digest(numbers, "numbers");
    EXPECT_EQ(expected.size(), 64u) << expected;
    EXPECT_EQ(digest(summarized, "summarized"), expected) << clip;
    EXPECT_EQ(digest(functions, "functions"), expected) << clip;
  }
}

// If two limits are set for a norm, both apply.
TEST_F(SlimRunTest, TheSmallerLimitOfANormHolds) {
  CreateTrainOpOptions loose, tight;
  loose.clip_gradient_norm = 4;
  tight.clip_gradient_norm = 0.1;
  const std::string clips = absl::StrCat(kSgd, "clip { by_norm: 0.25 }");
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, loose, clips), 9, "loose"),
            DigestAfter(*MakeOp(kLogistic, {}, clips), 9, "own"));
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, tight, clips), 9, "tight"),
            DigestAfter(*MakeOp(kLogistic, tight), 9, "slims"));
}

// SLIM-22
TEST_F(SlimRunTest, AMultiplierIsAsGoodAsARate) {
  CreateTrainOpOptions half;
  half.gradient_multipliers = {{"logits/kernel", 0.5f}, {"logits/bias", 0.5f}};
  const auto one = Run(*MakeOp(kLogistic, half), 50, "multiplied");
  const auto other = Run(*MakeOp(kLogistic, {}, "sgd {} learning_rate { initial: 0.5 }"), 50, "slower");
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_NEAR(*one, *other, 1e-3);
}

TEST_F(SlimRunTest, TransformsHaveTheSameBitsAnywhere) {
  CreateTrainOpOptions numbers, functions, own, summarized;
  numbers.gradient_multipliers = {{"logits/kernel", 3.0f}};
  numbers.clip_gradient_norm = 0.25;
  summarized = numbers;
  summarized.summarize_gradients = true;
  summarized.summarize_every_n_steps = 10;
  functions = numbers;
  functions.gradient_multipliers["logits/kernel"] = [](int64_t) { return 3.0f; };
  own.transform_grads_fn = [](std::vector<GradientAndVariable>& grads_and_vars, int64_t step) -> absl::Status {
    RETURN_IF_ERROR(MultiplyGradients(grads_and_vars, {{"logits/kernel", 3.0f}}, step));
    ClipGradientNorms(grads_and_vars, 0.25);
    return absl::OkStatus();
  };
  const std::string digest = DigestAfter(*MakeOp(kLogistic, numbers), 30, "numbers");
  EXPECT_EQ(digest.size(), 64u) << digest;
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, functions), 30, "functions"), digest);
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, own), 30, "own"), digest);
  options_.save_summaries_secs = absl::Seconds(600);
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, summarized), 30, "summarized"), digest);
  options_.save_summaries_secs = absl::ZeroDuration();
  EXPECT_NE(DigestAfter(*MakeOp(kLogistic), 30, "none"), digest);
  std::vector<std::string> written;
  for (const std::string& event : EventsIn("summarized")) {
    if (absl::StrContains(event, "gradient")) written.push_back(event);
  }
  EXPECT_THAT(written,
              ElementsAre("logits/kernel/gradient 1", "logits/kernel/gradient_norm 1", "logits/bias/gradient 1",
                          "logits/bias/gradient_norm 1", "logits/kernel/gradient 11", "logits/kernel/gradient_norm 11",
                          "logits/bias/gradient 11", "logits/bias/gradient_norm 11", "logits/kernel/gradient 21",
                          "logits/kernel/gradient_norm 21", "logits/bias/gradient 21", "logits/bias/gradient_norm 21"));
}

// The histograms of 60 variables in one step exceed 64 KiB.
TEST_F(SlimRunTest, SummariesOfAllGradientsAreWritten) {
  std::string model = "model {";
  for (int i = 0; i < 29; ++i) {
    absl::StrAppend(&model, "layer { name: \"h", i, "\" dense { units: 32 activation: TANH } }\n");
  }
  absl::StrAppend(&model, "layer { name: \"logits\" dense { units: 2 } } loss { softmax_cross_entropy {} } }");
  CreateTrainOpOptions summarized;
  summarized.summarize_gradients = true;
  options_.save_summaries_secs = absl::Seconds(600);
  ASSERT_TRUE(Run(*MakeOp(model, summarized), 2, "deep").ok());
  const std::vector<std::string> events = EventsIn("deep");
  EXPECT_EQ(absl::c_count_if(events, [](const std::string& e) { return absl::EndsWith(e, "/gradient 1"); }), 60);
  EXPECT_EQ(absl::c_count_if(events, [](const std::string& e) { return absl::EndsWith(e, "/gradient_norm 1"); }), 60);
}

TEST_F(SlimRunTest, SummariesOfGradientsObeyTheSwitches) {
  CreateTrainOpOptions summarized;
  summarized.summarize_gradients = true;
  const auto gradients_in = [this](const std::string& logdir) {
    return absl::c_count_if(EventsIn(logdir),
                            [](const std::string& event) { return absl::StrContains(event, "/gradient"); });
  };
  options_.save_summaries_secs = absl::ZeroDuration();
  ASSERT_TRUE(Run(*MakeOp(kLogistic, summarized), 2, "period").ok());
  EXPECT_EQ(gradients_in("period"), 0);
  options_.save_summaries_secs = absl::Seconds(600);
  options_.summary_op = kNone;
  ASSERT_TRUE(Run(*MakeOp(kLogistic, summarized), 2, "none").ok());
  EXPECT_EQ(gradients_in("none"), 0);
  options_.summary_op = Choice<SummaryFunction>();
  ASSERT_TRUE(Run(*MakeOp(kLogistic, summarized), 2, "default").ok());
  EXPECT_EQ(gradients_in("default"), 4);
}

// The optimizer's clip comes after all transforms of the train_op, and the norm shows the applied gradient.
TEST_F(SlimRunTest, GradientSummariesShowTheAppliedOnes) {
  CreateTrainOpOptions summarized;
  summarized.summarize_gradients = true;
  summarized.gradient_multipliers = {{"logits/kernel", [](int64_t) { return 1000.0f; }}};
  options_.save_summaries_secs = absl::Seconds(600);
  Mutex mutex;
  std::map<std::string, float> norms;
  options_.summary_writer = [&](const v1::Summary& summary, int64_t step) {
    MutexLock lock(&mutex);
    for (const auto& value : summary.value()) {
      if (step == 1 && absl::EndsWith(value.tag(), "_norm")) norms[value.tag()] = value.simple_value();
    }
    return absl::OkStatus();
  };
  const auto op = MakeOp(kLogistic, summarized, "sgd {} learning_rate { initial: 0.1 } clip { by_norm: 0.125 }");
  ASSERT_TRUE(Run(*op, 2, "clipped").ok());
  MutexLock lock(&mutex);
  EXPECT_EQ(norms.size(), 2u);
  EXPECT_FLOAT_EQ(norms["logits/kernel/gradient_norm"], 0.125f);
}

TEST_F(SlimRunTest, TheChiefsScalarsAreWrittenWithTheirPeriod) {
  options_.save_summaries_secs = absl::Seconds(600);
  options_.save_scalars_steps = 4;
  ASSERT_TRUE(Run(*MakeOp(kLogistic), 10, "scalars").ok());
  const std::vector<std::string> events = EventsIn("scalars");
  for (const char* tag : {"learning_rate", "global_norm/gradient_norm", "update_ratio", "examples/sec"}) {
    std::vector<std::string> found;
    for (const std::string& event : events) {
      if (absl::StartsWith(event, absl::StrCat(tag, " "))) found.push_back(event);
    }
    const std::vector<std::string> periods = {absl::StrCat(tag, " 4"), absl::StrCat(tag, " 8")};
    EXPECT_THAT(found, ::testing::IsSupersetOf(periods));
    // While a step is computed, it is not known whether it will be the last one, so the last step may have no norms.
    const bool measured = absl::StartsWith(tag, "global_norm") || absl::StartsWith(tag, "update_ratio");
    EXPECT_THAT(found, ::testing::SizeIs(::testing::AllOf(::testing::Ge(measured ? 2 : 3), ::testing::Le(3))));
  }
  EXPECT_LE(absl::c_count_if(events, [](const std::string& e) { return absl::StartsWith(e, "loss "); }), 1)
      << "the loss is the Supervisor's";
}

TEST_F(SlimRunTest, ArrangementsOfAGraphAreLogged) {
  CreateLog log;
  CreateTrainOpOptions options;
  const TrainOp plain = *MakeOp(kLogistic, options);
  EXPECT_THAT(log.lines, IsEmpty());
  options.gate_gradients = GateGradients::kGraph;
  options.aggregation_method = AggregationMethod::kExperimentalTree;
  options.colocate_gradients_with_ops = true;
  const TrainOp arranged = *MakeOp(kLogistic, options);
  EXPECT_THAT(log.lines,
              ElementsAre(HasSubstr("gate_gradients has no effect"), HasSubstr("aggregation_method has no effect"),
                          HasSubstr("colocate_gradients_with_ops has no effect")));
  EXPECT_EQ(DigestAfter(arranged, 3, "arranged"), DigestAfter(plain, 3, "plain"));
}

// GRAD-17
TEST_F(SlimRunTest, AMultiplierMayDependOnTheStep) {
  CreateTrainOpOptions stops;
  for (const char* name : {"logits/kernel", "logits/bias"}) {
    stops.gradient_multipliers[name] = [](int64_t step) { return step < 5 ? 1.0f : 0.0f; };
  }
  ASSERT_TRUE(Run(*MakeOp(kLogistic, stops), 9).ok());
  ASSERT_TRUE(Run(*MakeOp(kLogistic), 5, "five").ok());
  EXPECT_EQ(ValueOf("logits/kernel", 9), ValueOf("logits/kernel", 5, "five"));
}

// CTO-14
TEST_F(SlimRunTest, NoClippingIsTheWholeGradient) {
  CreateTrainOpOptions off;
  off.clip_gradient_norm = -1;
  EXPECT_EQ(DigestAfter(*MakeOp(kLogistic, off), 3, "off"), DigestAfter(*MakeOp(kLogistic), 3, "none"));
}

// CTO-12
TEST_F(SlimRunTest, ALossThatIsNotFiniteFailsTheRun) {
  const auto loss = Run(*MakeOp(kTwoLayers, {}, "sgd {} learning_rate { initial: 1e38 }"), 50);
  EXPECT_TRUE(absl::IsInvalidArgument(loss.status())) << loss.status();
  EXPECT_THAT(std::string(loss.status().message()), HasSubstr("is not finite"));
}

TEST_F(SlimRunTest, RefusesWhatDeterminismForbids) {
  const auto error = [&](const CreateTrainOpOptions& options) {
    const auto op = MakeOp(kLogistic, options);
    EXPECT_TRUE(absl::IsInvalidArgument(op.status())) << op.status();
    return std::string(op.status().message());
  };
  CreateTrainOpOptions options;
  options.global_step = kNone;  // CTO-04
  EXPECT_THAT(error(options), HasSubstr("global_step: must be the run's own"));
  options = {};
  options.global_step = std::string("other");
  EXPECT_THAT(error(options), HasSubstr("global_step"));
  options = {};
  options.variables_to_train = std::vector<std::string>();
  EXPECT_THAT(error(options), HasSubstr("variables_to_train: is empty"));
  options = {};
  options.check_numerics = false;
  EXPECT_THAT(error(options), AllOf(HasSubstr("check_numerics: cannot be false"), HasSubstr("skip_non_finite")));
  options = {};
  options.clip_gradient_norm = 1;
  options.transform_grads_fn = ClipGradientNormsFn(1);
  EXPECT_THAT(error(options), HasSubstr("transform_grads_fn: is given beside"));
  options = {};
  options.gradient_multipliers["w"] = std::function<float(int64_t)>();
  EXPECT_THAT(error(options), HasSubstr("gradient_multipliers: w: is null"));
  options = {};
  options.summarize_gradients = true;
  options.summarize_every_n_steps = 0;
  EXPECT_THAT(error(options), HasSubstr("summarize_every_n_steps: 0"));
  options = {};
  options.global_step = std::string("global_step");
  options.gradient_multipliers["nobody"] = 2.0f;
  EXPECT_THAT(std::string(Run(*MakeOp(kLogistic, options), 1).status().message()),
              HasSubstr("gradient_multipliers: nobody: no variable that is trained"));
}

// SLIM-27
TEST_F(SlimRunTest, WritesTheRecordsOfTheOriginal) {
  options_.save_summaries_secs = absl::Seconds(600);
  std::atomic<int> summaries{0};
  options_.summary_op = [&](Session&) {
    ++summaries;
    v1::Summary summary;
    summary.add_value()->set_tag("mine");
    return summary;
  };
  // The first step waits for the first summary.
  options_.train_step_fn = [&](Session& session, const TrainOp& op, TrainStepKwargs& kwargs) {
    while (summaries == 0) std::this_thread::yield();
    return TrainStep(session, op, kwargs);
  };
  ASSERT_TRUE(Run(*MakeOp(kLogistic), 3).ok());
  const std::vector<std::string> events = EventsIn("run");
  EXPECT_EQ(events.front(), "START 0");
  EXPECT_EQ(std::count(events.begin(), events.end(), "mine 0"), 1);
  EXPECT_EQ(summaries, 1);
  EXPECT_THAT(events, Contains("CHECKPOINT 3"));
  EXPECT_EQ(events.back(), "STOP 0");
}

TEST_F(SlimRunTest, ATraceShowsWhatTheStepsDoInside) {
  options_.trace_every_n_steps = 4;
  ASSERT_TRUE(Run(*MakeOp(kLogistic), 9).ok());
  for (const int step : {1, 5, 9}) {
    const auto trace = ReadFile(&fs_, absl::StrCat("run/tf_trace-", step, ".json"));
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (const char* name :
         {"step", "compute", "input", "send", "receive", "apply", "logits", "logits gradient", "loss"}) {
      EXPECT_THAT(*trace, HasSubstr(absl::StrCat("{\"name\":\"", name, "\",\"ph\":\"X\""))) << step;
    }
  }
}

TEST_F(SlimRunTest, WorkersTrainAsynchronouslyByDefault) {
  const TrainOp op = *MakeOp(kLogistic);
  options_.session.local_workers = 2;
  ASSERT_TRUE(Run(op, 40).ok());
  EXPECT_TRUE((*ReadRunRecord(&fs_, "run"))->config().training().has_async());
  const auto reader = BundleReader::Open(&fs_, "run/model.ckpt-40");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Tensor positions = (*reader)->Read("lockstep/stream_positions").value();
  const auto& flat = positions.flat<int64_t>();
  EXPECT_EQ(std::accumulate(flat.begin(), flat.end(), int64_t{0}), 40) << "each contribution made a step";
}

TEST_F(SlimRunTest, ADeterministicRunOfBeforeContinues) {
  const TrainOp op = *MakeOp(kLogistic);
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{1}};
  ASSERT_TRUE(Run(op, 5).ok());
  const std::string at_once = DigestAfter(op, 9, "at_once");
  options_.sync_optimizer.clear();
  EXPECT_EQ(DigestAfter(op, 9, "run"), at_once);
  EXPECT_EQ(DigestAfter(*CreateTrainOp(absl::StrCat(kLogistic, kData, "training { deterministic {} }"), kSgd, {}), 9,
                        "chosen"),
            at_once);
}

TEST_F(SlimRunTest, ARunWithAnotherPolicyIsRefusedByName) {
  const TrainOp op = *MakeOp(kLogistic);
  ASSERT_TRUE(Run(op, 3).ok());
  options_.sync_optimizer = {{1}};
  EXPECT_THAT(std::string(Run(op, 5).status().message()),
              HasSubstr("holds a run with policy ASYNC, and this configuration has policy DETERMINISTIC"));
  const TrainOp async = *CreateTrainOp(absl::StrCat(kLogistic, kData, "training { async {} }"), kSgd, {});
  EXPECT_THAT(std::string(Run(async, 5).status().message()), HasSubstr("has training.async; give one of them"));
}

TEST_F(SlimRunTest, AStopOfTheKwargsIsExact) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp op = *MakeOp(kLogistic);
  const auto expected = Run(op, 7, "bounded");
  ASSERT_TRUE(expected.ok()) << expected.status();
  options_.number_of_steps.reset();
  options_.train_step_kwargs.emplace().should_stop = [](int64_t step) { return step >= 7; };
  for (const std::string logdir : {"a", "b", "c", "d", "e", "f"}) {
    const auto loss = Train(op, logdir, options_);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_THAT(CheckpointsIn(logdir), ElementsAre("model.ckpt-0", "model.ckpt-7"));
    EXPECT_EQ(*loss, *expected) << "of the model that was saved";
    EXPECT_EQ(DigestOf(7, logdir), DigestOf(7, "bounded"));
  }
}

// A step function that counts evaluations in `extra`, changes the bias at each one, and stops after the third.
class Evaluating {
 public:
  // Imitates a kill of the program after step `killed_at`, before or after the evaluation.
  explicit Evaluating(int64_t killed_at = -1, bool after = false) : killed_at_(killed_at), after_(after) {}

  absl::StatusOr<TrainStepResult> operator()(Session& session, const TrainOp& op, TrainStepKwargs& kwargs) const {
    ASSIGN_OR_RETURN(const StepResult step, session.Run(op));
    TrainStepResult result{step.loss};
    if (step.global_step == killed_at_ && !after_) return absl::InternalError("killed");
    if (step.global_step % 4 == 0) {
      int& count = std::any_cast<int&>(kwargs.extra.at("evaluations"));
      ASSIGN_OR_RETURN(ReadResult read, session.Read({"logits/bias"}));
      EXPECT_EQ(read.global_step, step.global_step);
      std::vector<float> bias(read.values[0].value.flat<float>().begin(), read.values[0].value.flat<float>().end());
      for (float& value : bias) value += 1;
      RETURN_IF_ERROR(session.Assign({*NamedFloats("logits/bias", {2}, bias)}));
      result.should_stop = ++count == 3;
    }
    if (step.global_step == killed_at_) return absl::InternalError("killed");
    return result;
  }
  static TrainStepKwargs Kwargs() {
    TrainStepKwargs kwargs;
    kwargs.extra["evaluations"] = 0;
    kwargs.state = [](const TrainStepKwargs& own) {
      return absl::StrCat(std::any_cast<int>(own.extra.at("evaluations")));
    };
    kwargs.set_state = [](TrainStepKwargs& own, absl::string_view state) {
      int count = 0;
      if (!absl::SimpleAtoi(state, &count)) return absl::InvalidArgumentError("no number");
      own.extra["evaluations"] = count;
      return absl::OkStatus();
    };
    return kwargs;
  }

 private:
  const int64_t killed_at_;
  const bool after_;
};

TEST_F(SlimRunTest, TheStateOfAStepFunctionSurvivesTheChief) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  options_.train_step_kwargs = Evaluating::Kwargs();
  const TrainOp op = *MakeOp(kLogistic);
  options_.train_step_fn = Evaluating();
  ASSERT_TRUE(Train(op, "undisturbed", options_).ok());
  EXPECT_THAT(CheckpointsIn("undisturbed"), Contains("model.ckpt-12"));
  for (int64_t killed_at = 1; killed_at <= 12; ++killed_at) {
    for (const bool after : {false, true}) {
      const std::string logdir = absl::StrCat(killed_at, after);
      options_.train_step_fn = Evaluating(killed_at, after);
      EXPECT_TRUE(absl::IsInternal(Train(op, logdir, options_).status()));
      options_.train_step_fn = Evaluating();
      const auto loss = Train(op, logdir, options_);
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_EQ(DigestOf(12, logdir), DigestOf(12, "undisturbed")) << killed_at << after;
      EXPECT_THAT(CheckpointsIn(logdir), Not(Contains("model.ckpt-13")));
    }
  }
}

// Stops at a step.
class StopAt : public Hook {
 public:
  explicit StopAt(int64_t step) : step_(step) {}
  std::string name() const override { return "StopAt"; }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (values.result.global_step >= step_) context.RequestStop("enough");
    return absl::OkStatus();
  }
  absl::Status End(Session&) override {
    ++ends_;
    return absl::OkStatus();
  }
  int ends() const { return ends_; }

 private:
  const int64_t step_;
  int ends_ = 0;
};

// A hook that fails at the end of the loop, as if the program were killed before the end is recorded.
class FailingEnd : public Hook {
 public:
  std::string name() const override { return "FailingEnd"; }
  absl::Status End(Session&) override { return absl::InternalError("killed"); }
};

TEST_F(SlimRunTest, AStopIsRepeatedByTheLifeThatFollows) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp op = *MakeOp(kLogistic);
  const auto expected = Run(op, 7, "bounded");
  ASSERT_TRUE(expected.ok()) << expected.status();
  options_.number_of_steps.reset();
  const auto stops = [](int64_t step) { return step >= 7; };
  const TrainStepFn out_of_range = [&](Session& session, const TrainOp& train_op,
                                       TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    ASSIGN_OR_RETURN(const TrainStepResult result, TrainStep(session, train_op, kwargs));
    return stops(result.global_step) ? absl::StatusOr<TrainStepResult>(absl::OutOfRangeError("enough")) : result;
  };
  for (const std::string logdir : {"kwargs", "function"}) {
    options_.train_step_kwargs.reset();
    options_.train_step_fn = nullptr;
    if (logdir == "kwargs") {
      options_.train_step_kwargs.emplace().should_stop = stops;
    } else {
      options_.train_step_fn = out_of_range;
    }
    FailingEnd killed;
    options_.hooks = {&killed};
    EXPECT_TRUE(absl::IsInternal(Train(op, logdir, options_).status()));
    StopAt lives(1000);
    options_.hooks = {&lives};
    for (const char* life : {"killed", "ended"}) {
      const auto loss = Train(op, logdir, options_);
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_TRUE(logdir != "kwargs" || *loss == *expected) << life;
      EXPECT_THAT(CheckpointsIn(logdir), ElementsAre("model.ckpt-0", "model.ckpt-7")) << life;
      EXPECT_EQ(DigestOf(7, logdir), DigestOf(7, "bounded")) << life;
    }
  }
}

TEST_F(SlimRunTest, HooksStopTheRunAtTheirStep) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp op = *MakeOp(kLogistic);
  const auto expected = Run(op, 5, "bounded");
  options_.number_of_steps.reset();
  for (const bool own_function : {false, true}) {
    StopAt stop(5);
    options_.hooks = {&stop};
    if (own_function) options_.train_step_fn = TrainStep;
    const std::string logdir = own_function ? "own" : "default";
    const auto loss = Train(op, logdir, options_);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, *expected);
    EXPECT_THAT(CheckpointsIn(logdir), ElementsAre("model.ckpt-0", "model.ckpt-5"));
    EXPECT_EQ(stop.ends(), 1);
  }
}

TEST_F(SlimRunTest, AHookThatStaysStoppedKeepsTheRunWhereItIs) {
  EarlyStoppingOptions early;
  early.patience = 3;
  early.min_delta = 1e6;
  early.stay_stopped = true;
  const TrainOp op = *MakeOp(kLogistic);
  for (int start = 0; start < 3; ++start) {
    const auto hook = *EarlyStoppingHook::Create(early);
    options_.hooks = {hook.get()};
    const auto loss = Train(op, "run", options_);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(loss->has_value(), start == 0);
    EXPECT_THAT(CheckpointsIn("run"), ElementsAre("model.ckpt-0", "model.ckpt-4"));
  }
}

absl::StatusOr<TrainStepResult> FailAtThree(Session& session, const TrainOp& op, TrainStepKwargs& kwargs) {
  ASSIGN_OR_RETURN(const TrainStepResult result, TrainStep(session, op, kwargs));
  return result.global_step == 3 ? absl::StatusOr<TrainStepResult>(absl::InternalError("killed")) : result;
}

TEST_F(SlimRunTest, AnUnfinishedRunKeepsItsFunctions) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  options_.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    return InitialValues{{*NamedFloats("logits/bias", {2}, {7, 8})}, ""};
  };
  options_.train_step_fn = FailAtThree;
  const TrainOp op = *MakeOp(kLogistic);
  EXPECT_TRUE(absl::IsInternal(Run(op, 5).status()));
  options_.train_step_fn = nullptr;
  const auto refusal = [&](const TrainOp& other) {
    const absl::Status status = Run(other, 5).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(op), AllOf(HasSubstr("slim: train_step_fn"), HasSubstr("once it has ended well")));
  options_.train_step_fn = TrainStep;
  const auto early = *EarlyStoppingHook::Create({});
  options_.hooks = {early.get()};
  EXPECT_THAT(refusal(op), HasSubstr("slim: train_step_fn, hooks"));
  options_.session.program = "slim: train_step_fn";
  EXPECT_THAT(refusal(op), HasSubstr("no state of EarlyStoppingHook"));
  options_.hooks.clear();
  CreateTrainOpOptions narrow;
  narrow.variables_to_train = {{"logits/bias"}};
  EXPECT_THAT(refusal(*MakeOp(kLogistic, narrow)),
              AllOf(HasSubstr("variables[0].trainable"), HasSubstr("others may be trained")));
  // Without an init_fn, the run continues too, because it would not be called again.
  options_.init_fn = nullptr;
  ASSERT_TRUE(Run(op, 5).ok());
}

TEST_F(SlimRunTest, FunctionsMayDifferAfterAGoodEnd) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp op = *MakeOp(kLogistic);
  ASSERT_TRUE(Run(op, 3).ok());
  const auto early = *EarlyStoppingHook::Create({});
  options_.hooks = {early.get()};
  ASSERT_TRUE(Run(op, 5).ok());
  options_.hooks.clear();
  options_.train_step_fn = TrainStep;
  ASSERT_TRUE(Run(op, 7).ok());
  CreateTrainOpOptions halved;
  halved.gradient_multipliers = {{"logits/kernel", [](int64_t) { return 0.5f; }}};
  ASSERT_TRUE(Run(*MakeOp(kLogistic, halved), 9).ok());
  std::vector<std::string> changes;
  const v1::RunRecord record = **ReadRunRecord(&fs_, "run", {});
  for (const auto& change : record.program_change()) changes.push_back(absl::StrCat(change.step(), " ", change.what()));
  EXPECT_THAT(changes, ElementsAre(HasSubstr("3 was made without functions of a program, continues with functions of "
                                             "the program slim: hooks"),
                                   HasSubstr("5 was made with functions of the program slim: hooks"),
                                   "5 no longer has EarlyStoppingHook", HasSubstr("7 computes other gradients")));
  EXPECT_NE(DigestOf(9), DigestAfter(op, 9, "unchanged"));
}

TEST_F(SlimRunTest, OtherVariablesAreTrainedAfterAGoodEnd) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  options_.train_step_fn = TrainStep;
  const std::string adagrad = "adagrad {} learning_rate { initial: 0.1 }";
  CreateTrainOpOptions create;
  create.variables_to_train = {{"logits/bias"}};
  const TrainOp all = *MakeOp(kLogistic, {}, adagrad), bias = *MakeOp(kLogistic, create, adagrad);
  const auto run = [&](const std::string& logdir, bool killed) {
    EXPECT_TRUE(Run(all, 2, logdir).ok());
    for (const int64_t steps : {5, 8}) {
      const TrainOp& op = steps == 5 ? bias : all;
      if (killed) {
        options_.train_step_fn = [](Session&, const TrainOp&, TrainStepKwargs&) -> absl::StatusOr<TrainStepResult> {
          return absl::InternalError("killed before a step");
        };
        EXPECT_TRUE(absl::IsInternal(Run(op, steps, logdir).status()));
        options_.train_step_fn = TrainStep;
      }
      const auto loss = Run(op, steps, logdir);
      EXPECT_TRUE(loss.ok()) << loss.status();
    }
  };
  run("run", false);
  run("killed", true);
  EXPECT_EQ(DigestOf(8, "killed"), DigestOf(8));
  EXPECT_EQ(ValueOf("logits/kernel", 5), ValueOf("logits/kernel", 2));
  EXPECT_NE(ValueOf("logits/bias", 5), ValueOf("logits/bias", 2));
  EXPECT_NE(ValueOf("logits/kernel", 8), ValueOf("logits/kernel", 5)) << "its state starts anew";
  const v1::RunRecord record = **ReadRunRecord(&fs_, "killed", {});
  ASSERT_EQ(record.program_change_size(), 2);
  EXPECT_EQ(record.program_change(0).what(), "trains logits/bias; before logits/kernel, logits/bias");
}

// SLIM-16
TEST_F(SlimRunTest, AnEmptyInputEndsWell) {
  class NoBatches : public BatchSource {
   public:
    explicit NoBatches(ExampleSpec spec) : spec_(std::move(spec)) {}
    const ExampleSpec& spec() const override { return spec_; }
    absl::StatusOr<Batch> Get(int64_t, int64_t) override { return absl::OutOfRangeError("no more"); }

   private:
    const ExampleSpec spec_;
  };
  TrainOp op = *MakeOp(kLogistic);
  op.make_workload = [](const config::v1::RunSpec& spec) -> absl::StatusOr<Workload> {
    ASSIGN_OR_RETURN(Workload workload, LoadWorkload(spec, {}));
    workload.batches = std::make_unique<NoBatches>(workload.batches->spec());
    return workload;
  };
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  for (int i = 0; i < 20; ++i) {
    const auto loss = Train(op, absl::StrCat("run", i), options_);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(*loss, absl::nullopt);
    EXPECT_THAT(CheckpointsIn(absl::StrCat("run", i)), ElementsAre("model.ckpt-0"));
  }
}

TEST_F(SlimRunTest, AStepFunctionEndsTheRunAtItsStep) {
  options_.train_step_fn = [](Session& session, const TrainOp& op,
                              TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    ASSIGN_OR_RETURN(TrainStepResult result, TrainStep(session, op, kwargs));
    result.should_stop = result.global_step == 7;
    return result;
  };
  const auto loss = Train(*MakeOp(kLogistic), "run", options_);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_THAT(CheckpointsIn("run"), ElementsAre("model.ckpt-0", "model.ckpt-7"));
}

// EVAL-11
TEST_F(SlimRunTest, EvaluatesACheckpointOnce) {
  const auto none = EvaluateOnce("run/model.ckpt-5", "eval", {});
  EXPECT_TRUE(absl::IsInvalidArgument(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("checkpoint_path: there is no checkpoint run/model.ckpt-5"));

  ASSERT_TRUE(Run(*MakeOp(kLogistic), 5).ok());
  EvaluateOptions options;
  options.fs = &fs_;
  int hooks = 0;
  options.hooks = {[&](const Evaluation& evaluation) {
    ++hooks;
    EXPECT_EQ(evaluation.step, 5);
    return absl::OkStatus();
  }};
  auto evaluation = EvaluateOnce("run/model.ckpt-5", "eval", options);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->result.examples, 40);
  EXPECT_EQ(hooks, 1);
  EXPECT_THAT(EventsIn("eval"), Contains("accuracy 5"));

  options.num_evals = 2;
  options.eval_op = {"mean_loss"};
  options.summary_op = [](const Evaluation&) {
    v1::Summary summary;
    summary.add_value()->set_tag("mine");
    return summary;
  };
  evaluation = EvaluateOnce("run/model.ckpt-5", "other", options);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->result.examples, 32);
  ASSERT_EQ(evaluation->result.metrics.size(), 1u);
  EXPECT_EQ(evaluation->result.metrics[0].name, "mean_loss");
  EXPECT_THAT(EventsIn("other"), ElementsAre("mine 5"));
  options.num_evals = 0;
  EXPECT_THAT(std::string(EvaluateOnce("run/model.ckpt-5", "", options).status().message()), HasSubstr("num_evals: 0"));
}

// Returns `op` with a model from make_workload instead of the configured one.
TrainOp WithModelOf(const TrainOp& other, TrainOp op) {
  op.make_workload = [model = other.spec.model()](config::v1::RunSpec spec) {
    *spec.mutable_model() = model;
    return LoadWorkload(spec, {});
  };
  return op;
}

TEST_F(SlimRunTest, EvaluatesAModelOfMakeWorkload) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp two_layers = *MakeOp(kTwoLayers), op = WithModelOf(two_layers, *MakeOp(kLogistic));
  ASSERT_TRUE(Run(op, 5).ok());
  ASSERT_TRUE(Run(two_layers, 5, "configured").ok());
  EvaluateOptions options;
  options.fs = &fs_;
  EXPECT_TRUE(absl::IsInvalidArgument(EvaluateOnce("run/model.ckpt-5", "", options).status())) << "of other shapes";
  const auto configured = EvaluateOnce("configured/model.ckpt-5", "", options);
  options.op = op;
  const auto own = EvaluateOnce("run/model.ckpt-5", "", options);
  ASSERT_TRUE(own.ok() && configured.ok()) << own.status() << configured.status();
  EXPECT_EQ(own->result.ToString(), configured->result.ToString());
}

TEST_F(SlimRunTest, EvaluatesValuesThatASessionReads) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  const TrainOp two_layers = *MakeOp(kTwoLayers);
  for (const TrainOp& op : {two_layers, WithModelOf(two_layers, *MakeOp(kLogistic))}) {
    const std::string logdir = op.make_workload ? "own" : "configured";
    const auto evaluate = ValuesEvaluator(op, "test", {"accuracy", "mean_loss"});
    ASSERT_TRUE(evaluate.ok()) << evaluate.status();
    MetricsOfValues metrics;
    options_.train_step_fn = [&](Session& session, const TrainOp& train_op,
                                 TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
      ASSIGN_OR_RETURN(const TrainStepResult result, TrainStep(session, train_op, kwargs));
      ASSIGN_OR_RETURN(ReadResult values, session.Read({}));
      ASSIGN_OR_RETURN(metrics, (*evaluate)(values));
      const auto bias = absl::c_find_if(values.values, [](const auto& value) { return value.name == "hidden/bias"; });
      values.values.erase(bias);
      EXPECT_THAT(std::string((*evaluate)(values).status().message()),
                  HasSubstr("lack the model's variable hidden/bias"));
      return result;
    };
    ASSERT_TRUE(Run(op, 3, logdir).ok());
    EvaluateOptions options;
    options.fs = &fs_;
    options.op = op;
    options.eval_op = {"accuracy", "mean_loss"};
    const auto expected = EvaluateOnce(absl::StrCat(logdir, "/model.ckpt-3"), "", options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(metrics.at("accuracy"), expected->result.Find("accuracy")->value);
    EXPECT_EQ(metrics.at("mean_loss"), expected->result.Find("mean_loss")->value);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ValuesEvaluator(*MakeOp(kLogistic), "test", {"acuracy"}).status()));
}

TEST_F(SlimRunTest, OwnUpdateOpsRunBesideTheModels) {
  options_.session.local_workers = 2;
  options_.sync_optimizer = {{2}};
  OwnUpdateOp seen;
  seen.variable.set_name("examples_seen");
  seen.variable.set_dtype(v1::DT_FLOAT);
  seen.variable.add_shape(1);
  seen.kind = v1::UpdateOpSpec::ASSIGN_ADD;
  seen.value = [](VariableValues, const Batch& batch, const SlotKey&) -> absl::StatusOr<std::vector<float>> {
    return std::vector<float>{static_cast<float>(batch.size)};
  };
  OwnUpdateOp average = seen;
  average.variable.set_name("mean_size");
  average.kind = v1::UpdateOpSpec::MOVING_AVERAGE;
  average.decay = 0.75f;
  average.zero_debias = true;
  CreateTrainOpOptions create;
  create.own_update_ops = {average, seen};
  const TrainOp op = *MakeOp(kBatchNorm, create);
  const auto model = ModelOf(op);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->variables(model->variables_size() - 1).name(), "examples_seen");
  ASSERT_TRUE(Run(op, 3).ok());
  EXPECT_THAT(ValueOf("examples_seen", 3), ElementsAre(3 * 2 * 16));
  EXPECT_THAT(ValueOf("mean_size", 3), ElementsAre(16)) << "the mean of a constant, without the 0 at which it starts";
  EXPECT_THAT(ValueOf("mean_size/local_step", 3), ElementsAre(3 * 2));
  EvaluateOptions options;
  options.fs = &fs_;
  options.op = op;
  EXPECT_TRUE(EvaluateOnce("run/model.ckpt-3", "", options).ok());
  ASSERT_TRUE(Run(*MakeOp(kBatchNorm), 3, "without").ok());
  EXPECT_EQ(ValueOf("bn/moving_mean", 3), ValueOf("bn/moving_mean", 3, "without"));
  EXPECT_EQ(ValueOf("logits/kernel", 3), ValueOf("logits/kernel", 3, "without"));

  create.own_update_ops[1].value = [](VariableValues, const Batch&, const SlotKey&) {
    return absl::StatusOr<std::vector<float>>(std::vector<float>(2));
  };
  EXPECT_THAT(std::string(Run(*MakeOp(kBatchNorm, create), 3, "wrong").status().message()),
              HasSubstr("own_update_ops: examples_seen: the value has 2 elements, the variable 1"));
  create.own_update_ops[1].variable.set_name("bn/moving_mean");
  EXPECT_THAT(std::string(Run(*MakeOp(kBatchNorm, create), 3, "twice").status().message()),
              HasSubstr("the model has such a variable already"));
}

TEST_F(SlimRunTest, OnlyVariablesToAverageAreAveraged) {
  SyncReplicas sync;
  sync.variable_averages.emplace().set_decay(0.5f);
  sync.variables_to_average = {{"logits/bias"}};
  options_.sync_optimizer = {sync};
  ASSERT_TRUE(Run(*MakeOp(kLogistic), 1).ok());
  const std::vector<float> first = ValueOf("logits/bias", 0), value = ValueOf("logits/bias", 1);
  std::vector<float> average;
  for (size_t i = 0; i < value.size(); ++i) average.push_back(first[i] - (first[i] - value[i]) * 0.5f);
  EXPECT_EQ(ValueOf("logits/bias/ExponentialMovingAverage", 1), average);
  const auto reader = BundleReader::Open(&fs_, "run/model.ckpt-1");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE((*reader)->Contains("logits/kernel/ExponentialMovingAverage"));
  sync.variables_to_average = {{"logits/weights"}};
  options_.sync_optimizer = {sync};
  EXPECT_THAT(std::string(Run(*MakeOp(kLogistic), 1, "wrong").status().message()),
              HasSubstr("matches no trainable variable"));
}

TEST_F(SlimRunTest, EvaluatesCheckpointsAsTheyCome) {
  const TrainOp op = *MakeOp(kLogistic);
  ASSERT_TRUE(Run(op, 5).ok());
  EvaluationLoopOptions options;
  options.fs = &fs_;
  options.eval_interval_secs = absl::ZeroDuration();
  options.timeout = absl::ZeroDuration();
  std::vector<int64_t> steps;
  options.hooks = {[&](const Evaluation& evaluation) {
    steps.push_back(evaluation.step);
    return evaluation.step < 9 ? Run(op, 9).status() : absl::OkStatus();
  }};
  auto last = EvaluationLoop("run", "eval", options);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)->step, 9);
  EXPECT_THAT(steps, ElementsAre(5, 9));
  options.max_number_of_evaluations = 1;
  options.timeout = absl::InfiniteDuration();
  ASSERT_TRUE(EvaluationLoop("run", "eval", options).ok());
  EXPECT_THAT(steps, ElementsAre(5, 9, 9));
  options.timeout = absl::ZeroDuration();
  last = EvaluationLoop("empty", "", options);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*last, absl::nullopt);
  StopSignal stop;
  stop.Request();
  options.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(EvaluationLoop("empty", "", options).status())) << "not the end of a run";
}

// SLIM-30
TEST_F(SlimRunTest, TheNewerTrainWantsALogdirForWhatItSaves) {
  const TrainOp op = *MakeOp(kLogistic);
  training::TrainOptions options;
  options.session.fs = &fs_;
  EXPECT_THAT(std::string(training::Train(op, "", options).status().message()), HasSubstr("save_summaries_steps"));
  options.save_summaries_steps = kNone;
  const auto loss = training::Train(op, "", options);
  EXPECT_TRUE(absl::IsInvalidArgument(loss.status()));
  EXPECT_THAT(std::string(loss.status().message()), HasSubstr("save_checkpoint_secs"));
}

// SLIM-31
TEST_F(SlimRunTest, TheNewerTrainRunsUntilAHookStops) {
  StopAt stop(1);
  training::TrainOptions options;
  options.session.fs = &fs_;
  options.hooks = {&stop};
  options.save_summaries_steps = kNone;
  options.save_checkpoint_secs = kNone;
  auto loss = training::Train(*MakeOp(kLogistic), "", options);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_TRUE(loss->has_value());
  options.save_checkpoint_secs = absl::Seconds(600);
  loss = training::Train(*MakeOp(kLogistic), "run", options);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_THAT(CheckpointsIn("run"), ElementsAre("model.ckpt-0", "model.ckpt-1"));
}

TEST_F(SlimRunTest, TheNewerTrainTakesItsOptions) {
  TrainOp op = *MakeOp(kLogistic);
  op.spec.mutable_input()->set_epochs(9);
  StopAt stop(5);
  training::TrainOptions options;
  options.session.fs = &fs_;
  options.chief_only_hooks = {&stop};
  options.save_summaries_steps = 2;
  options.scaffold.summary = SummaryProvider([](Session&, int64_t) {
    v1::Summary summary;
    summary.add_value()->set_tag("mine");
    return summary;
  });
  ASSERT_TRUE(training::Train(op, "run", options).ok());
  EXPECT_EQ(stop.ends(), 1);
  EXPECT_THAT(CheckpointsIn("run"), Contains("model.ckpt-5"));
  const std::vector<std::string> events = EventsIn("run");
  for (const char* event : {"mine 1", "mine 3", "mine 5"}) EXPECT_THAT(events, Contains(event));
  EXPECT_THAT(events, Not(Contains("mine 2")));
  op.spec.mutable_checkpoint()->set_every_seconds(30);
  options.session.open = [](const SessionOptions& session) -> absl::StatusOr<HeldSession> {
    EXPECT_EQ(session.op.spec.checkpoint().every_seconds(), 30) << "as configured";
    return absl::OutOfRangeError("the run is over");
  };
  EXPECT_TRUE(training::Train(op, "run", options).ok());
  options.save_checkpoint_secs = absl::Seconds(7);
  options.session.open = [](const SessionOptions& session) -> absl::StatusOr<HeldSession> {
    EXPECT_EQ(session.op.spec.checkpoint().every_seconds(), 7);
    return absl::OutOfRangeError("the run is over");
  };
  EXPECT_TRUE(training::Train(op, "run", options).ok());
  options.session.is_chief = false;
  options.session.master = "grpc://127.0.0.1:1";
  options.max_wait_secs = absl::Seconds(2);
  options.session.open = [](const SessionOptions& session) -> absl::StatusOr<HeldSession> {
    EXPECT_LE(session.max_wait.value_or(absl::InfiniteDuration()), absl::Seconds(2));
    return absl::OutOfRangeError("the run is over");
  };
  EXPECT_TRUE(training::Train(op, "", options).ok());
  EXPECT_EQ(stop.ends(), 1) << "it is the chief's alone";
}

// The session options set by Program reach the chief, whatever op is passed to Train.
TEST_F(SlimRunTest, BothTrainsKeepTheLingerOfTheSession) {
  const auto op = MakeOp(kLogistic);
  ASSERT_TRUE(op.ok()) << op.status();
  SessionOptions session = options_.session;
  session.listen = "127.0.0.1:0";
  session.linger = absl::Hours(1);
  const auto stays = [&](const std::function<absl::Status()>& train) {
    LingerLog log;
    StopSignal stop;
    session.stop = &stop;
    std::atomic<bool> ended{false};
    std::thread program([&] {
      EXPECT_TRUE(train().ok());
      ended = true;
    });
    while (!log.said() && !ended) std::this_thread::yield();
    stop.Request();
    program.join();
    return log.said();
  };
  EXPECT_TRUE(stays([&] {
    options_.session = session;
    return Run(*op, 2, "learning").status();
  }));
  EXPECT_TRUE(stays([&] {
    training::TrainOptions options;
    options.session = session;
    TrainOp two_steps = *op;
    two_steps.spec.mutable_training()->clear_unbounded();
    two_steps.spec.mutable_training()->set_steps(2);
    return training::Train(two_steps, "training", std::move(options)).status();
  }));
}

}  // namespace
}  // namespace lockstep::train::slim
