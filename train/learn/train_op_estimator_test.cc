// Tests experiments with real chiefs in this process.
#include "lockstep/train/learn/train_op_estimator.h"

#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/recorded_run.h"
#include "lockstep/train/learn/experiment.h"
#include "lockstep/train/learn/model_export.h"
#include "lockstep/train/learn/testing/fake_estimator.h"
#include "lockstep/train/session/local_workers.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
  input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } }
          split { name: "test" synthetic { examples: 40 shape: 4 classes: 3 } } batch_size: 4 }
  training { replicas_to_aggregate: 2 unbounded: true })";

class TrainOpEstimatorTest : public ::testing::Test {
 protected:
  TrainOpEstimatorTest() {
    options_.session.op = CreateTrainOp(std::string(kRun)).value();
    options_.session.fs = &fs_;
    config_.model_dir = "run";
    // Without a timer, the tests know exactly which steps are saved.
    config_.save_checkpoints_secs = kNone;
  }
  std::shared_ptr<TrainOpEstimator> MakeEstimator() {
    auto estimator = TrainOpEstimator::Create(ConfigOf("", config_), options_);
    EXPECT_TRUE(estimator.ok()) << estimator.status();
    return *estimator;
  }
  std::unique_ptr<Experiment> Make(ExperimentOptions experiment) {
    experiment.estimator = MakeEstimator();
    experiment.eval_steps = absl::nullopt;
    return Experiment::Create(std::move(experiment)).value();
  }
  std::string DigestOf(const std::string& prefix) {
    const auto reader = BundleReader::Open(&fs_, prefix);
    return reader.ok() ? CheckpointDigest(**reader).value() : reader.status().ToString();
  }
  std::string ErrorOf(const std::string& tf_config = "") {
    const auto estimator =
        TrainOpEstimator::Create(RunConfig::Create(config_, ParseTfConfig(tf_config).value()).value(), options_);
    EXPECT_TRUE(absl::IsInvalidArgument(estimator.status()));
    return std::string(estimator.status().message());
  }

  MemoryFileSystem fs_;
  TrainOpEstimatorOptions options_;
  RunConfigOptions config_;
};

// EXP-25, with the export steps of TensorFlow 1.15. The version of TensorFlow in the document saves after steps 1, 4, 7
// and 8.
TEST_F(TrainOpEstimatorTest, EachCheckpointIsEvaluatedAndExported) {
  config_.save_checkpoints_steps = 3;
  ExperimentOptions options;
  options.train_steps = 8;
  options.checkpoint_and_export = true;
  options.export_strategies = {MakeExportStrategy("all")};
  const auto result = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*fs_.ListDirectory("run/export/all"), ElementsAre("0", "3", "6", "8", "export.lock"));
  EXPECT_EQ(result->evaluation->global_step, 8);
  EXPECT_THAT(result->exports, ElementsAre("run/export/all/8"));
  EXPECT_EQ(result->evaluation->metrics.count("accuracy"), 1u);
  EXPECT_EQ(fs_.ListDirectory("run/eval")->size(), 1u);
}

TEST_F(TrainOpEstimatorTest, TrainsAsynchronouslyByDefault) {
  const auto policy = [&](const std::string& logdir) {
    config_.model_dir = logdir;
    ExperimentOptions options;
    options.train_steps = 4;
    EXPECT_TRUE(Make(options)->Train().ok());
    return (*ReadRunRecord(&fs_, logdir))->config().training().policy_case();
  };
  EXPECT_EQ(policy("chosen"), config::v1::TrainingConfig::POLICY_NOT_SET) << "with replicas_to_aggregate";
  options_.session.op.spec.mutable_training()->set_replicas_to_aggregate(1);
  EXPECT_EQ(policy("run"), config::v1::TrainingConfig::kAsync);
}

TEST_F(TrainOpEstimatorTest, SavesWithThePeriodOfTheConfiguration) {
  config_.save_checkpoints_secs = {};
  options_.session.op.spec.mutable_checkpoint()->set_every_steps(3);
  for (const bool listens : {false, true}) {
    config_.model_dir = listens ? "listened" : "alone";
    ExperimentOptions options;
    options.train_steps = 8;
    options.checkpoint_and_export = listens;
    options.export_strategies = {MakeExportStrategy("all")};
    ASSERT_TRUE(Make(options)->TrainAndEvaluate().ok());
    for (const int64_t step : {0, 3, 6, 8}) {
      EXPECT_EQ(DigestOf(absl::StrCat(config_.model_dir, "/model.ckpt-", step)).size(), 64u) << step;
    }
  }
}

TEST_F(TrainOpEstimatorTest, WithoutAPeriodCheckpointAndExportWatches) {
  config_.save_checkpoints_secs = {};
  options_.session.op.spec.mutable_checkpoint()->set_every_seconds(0);
  ExperimentOptions options;
  options.train_steps = 4;
  options.checkpoint_and_export = true;
  const auto result = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(result.ok()) << result.status() << ": there is no checkpoint to listen to";
  EXPECT_EQ(result->evaluation->global_step, 4);
}

TEST_F(TrainOpEstimatorTest, EvaluationsDoNotChangeTheWeights) {
  ExperimentOptions plain;
  plain.train_steps = 12;
  plain.min_eval_frequency = 0;
  ASSERT_TRUE(Make(plain)->TrainAndEvaluate().ok());
  const std::string digest = DigestOf("run/model.ckpt-12");
  EXPECT_EQ(digest.size(), 64u) << digest;

  config_.model_dir = "busy";
  config_.save_checkpoints_steps = 2;
  ExperimentOptions busy;
  busy.train_steps = 12;
  busy.check_interval = absl::ZeroDuration();
  ASSERT_TRUE(Make(busy)->TrainAndEvaluate().ok());
  EXPECT_EQ(DigestOf("busy/model.ckpt-12"), digest);

  config_.model_dir = "pieces";
  ExperimentOptions pieces;
  pieces.train_steps = 12;
  pieces.train_steps_per_iteration = 5;
  std::vector<int64_t> steps;
  const auto result = Make(pieces)->ContinuousTrainAndEval([&](const absl::optional<EvaluationMetrics>& last) {
    if (last) steps.push_back(last->global_step);
    return true;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(steps, ElementsAre(5, 10, 12));
  EXPECT_EQ(result->evaluation->global_step, 12);
  EXPECT_EQ(DigestOf("pieces/model.ckpt-12"), digest);
}

// The weights stay the same however often the program is started again.
TEST_F(TrainOpEstimatorTest, AFinishedProgramThatIsStartedAgainTakesNoStep) {
  options_.session.local_workers = 2;
  ExperimentOptions options;
  options.train_steps = 20;
  options.train_steps_per_iteration = 6;
  std::string digest;
  for (int start = 0; start < 3; ++start) {
    std::vector<int64_t> steps;
    const auto result = Make(options)->ContinuousTrainAndEval([&](const absl::optional<EvaluationMetrics>& last) {
      if (last) steps.push_back(last->global_step);
      return true;
    });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->evaluation->global_step, 20);
    EXPECT_EQ(steps, start == 0 ? std::vector<int64_t>({6, 12, 18, 20}) : std::vector<int64_t>({20}));
    if (start == 0) digest = DigestOf("run/model.ckpt-20");
    EXPECT_EQ(DigestOf("run/model.ckpt-20"), digest);
    EXPECT_FALSE(fs_.Exists("run/model.ckpt-21.index").value());
  }
  options.train_steps = 8;
  const auto fewer = Make(options)->ContinuousTrainAndEval();
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_EQ(fewer->evaluation->global_step, 20) << "a run does not go back";
}

// Without train_steps, the configured length applies.
TEST_F(TrainOpEstimatorTest, RoundsEndAtTheConfiguredSteps) {
  options_.session.local_workers = 2;
  options_.session.op.spec.mutable_training()->clear_unbounded();
  options_.session.op.spec.mutable_training()->set_steps(7);
  ExperimentOptions options;
  options.train_steps_per_iteration = 5;
  for (int start = 0; start < 2; ++start) {
    int rounds = 0;
    const auto result =
        Make(options)->ContinuousTrainAndEval([&](const absl::optional<EvaluationMetrics>&) { return ++rounds < 6; });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->evaluation->global_step, 7) << start;
    EXPECT_LT(rounds, 6) << "it ends by itself";
  }
  EXPECT_FALSE(fs_.Exists("run/model.ckpt-10.index").value());
}

TEST_F(TrainOpEstimatorTest, TrainsOnTheSplitThatIsNamed) {
  options_.session.local_workers = 2;
  const auto trained_on = [&](const std::string& split) {
    config_.model_dir += "_on_" + split;
    ExperimentOptions options;
    options.train_steps = 6;
    options.train_split = split;
    options.min_eval_frequency = 0;
    const auto result = Make(options)->TrainAndEvaluate();
    EXPECT_TRUE(result.ok()) << result.status();
    return DigestOf(config_.model_dir + "/model.ckpt-6");
  };
  const std::string on_train = trained_on("train");
  const std::string on_test = trained_on("test");
  EXPECT_NE(on_test, on_train);
  // Swapping the names of the splits results in the same run.
  auto* const splits = options_.session.op.spec.mutable_input()->mutable_split();
  splits->Mutable(0)->set_name("other");
  splits->Mutable(1)->set_name("train");
  options_.session.op.spec.mutable_evaluation()->set_split("other");
  EXPECT_EQ(trained_on("train"), on_test);
  EXPECT_EQ(trained_on("other"), on_train);
  options_.session.op.spec.mutable_evaluation()->set_split("train");
  ExperimentOptions options;
  options.train_split = "other";
  EXPECT_TRUE(absl::IsInvalidArgument(Make(options)->TrainAndEvaluate().status()))
      << "it would evaluate the split that it does not name";
}

TEST_F(TrainOpEstimatorTest, EvaluatesTheExamplesOfAFunction) {
  int calls = 0;
  ExperimentOptions options;
  options.train_steps = 4;
  options.min_eval_frequency = 0;
  options.eval_input_fn = [&]() -> absl::StatusOr<std::unique_ptr<Dataset>> {
    ++calls;
    const config::v1::RunSpec& spec = options_.session.op.spec;
    return OpenDataset(spec.input(), "train", spec.training().seed(), {});
  };
  options.eval_metrics = {"accuracy"};
  const auto of_function = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(of_function.ok()) << of_function.status();
  EXPECT_EQ(calls, 1);
  options.eval_input_fn = nullptr;
  options.eval_split = "train";
  const auto of_split = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(of_split.ok()) << of_split.status();
  EXPECT_EQ(of_function->evaluation->metrics, of_split->evaluation->metrics);
  options.eval_split = "test";
  EXPECT_NE(Make(options)->TrainAndEvaluate()->evaluation->metrics, of_split->evaluation->metrics);
}

// The chief has no local workers, so the run ends only if this worker finds the chief.
TEST_F(TrainOpEstimatorTest, AWorkerConnectsToTheMasterThatItNames) {
  options_.session.listen = "127.0.0.1:0";
  options_.session.port_file = "run.port";
  options_.session.local_workers = 0;
  Estimator::TrainArguments training;
  training.max_steps = 6;
  const auto chief = MakeEstimator();
  absl::Status chief_status;
  std::thread chief_thread([&] { chief_status = chief->Train(training); });
  while (!fs_.Exists("run.port").value()) std::this_thread::yield();
  config_.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs_, "run.port").value()));
  options_.session.listen.clear();
  options_.session.port_file.clear();
  options_.session.is_chief = false;
  const RunConfig config = ConfigOf(R"({"task": {"type": "worker", "index": 1}})", config_);
  const absl::Status worker_status = TrainOpEstimator::Create(config, options_).value()->Train(training);
  chief_thread.join();
  EXPECT_TRUE(worker_status.ok()) << worker_status;
  EXPECT_TRUE(chief_status.ok()) << chief_status;
  EXPECT_EQ(DigestOf("run/model.ckpt-6").size(), 64u);
}

TEST_F(TrainOpEstimatorTest, ListenersHearOfEachCheckpoint) {
  class Recorder : public CheckpointListener {
   public:
    absl::StatusOr<bool> AfterSave(Session& /*session*/, int64_t step, const std::string& /*prefix*/) override {
      steps.push_back(step);
      return false;
    }
    std::vector<int64_t> steps;
  } listener;
  config_.save_checkpoints_steps = 2;
  ExperimentOptions options;
  options.train_steps = 5;
  options.saving_listeners = {&listener};
  ASSERT_TRUE(Make(options)->Train().ok());
  EXPECT_THAT(listener.steps, ElementsAre(0, 2, 4, 5));
}

// The check comes before any training.
TEST_F(TrainOpEstimatorTest, AnExperimentIsCheckedWhenItIsMade) {
  CheckpointListener listener;
  ExperimentOptions options;
  options.estimator = MakeEstimator();
  const auto error = [&](const std::function<void(ExperimentOptions*)>& change) {
    ExperimentOptions changed = options;
    change(&changed);
    const absl::Status status = Experiment::Create(changed).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error([](auto* o) { o->train_split = "nope"; }),
              HasSubstr("train_split is nope, which is not a split of the input: train, test"));
  EXPECT_THAT(error([](auto* o) { o->eval_split = "tset"; }), HasSubstr("\"tset\", which is not a split"));
  EXPECT_THAT(error([](auto* o) { o->eval_metrics = {"nope"}; }), HasSubstr("evaluation.metric[0]"));
  EXPECT_THAT(error([&](auto* o) { o->saving_listeners = {&listener}; }),
              HasSubstr("saving_listeners hear of no checkpoint"));
  // A run whose input has nothing to evaluate is rejected before training.
  options_.session.op.spec.mutable_input()->mutable_split()->RemoveLast();
  options_.session.op.spec.mutable_evaluation()->clear_split();
  const absl::Status status = Make({})->TrainAndEvaluate().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_FALSE(fs_.Exists("run").value());
}

TEST_F(TrainOpEstimatorTest, AnExportHasTheModelAndNothingElse) {
  ExperimentOptions options;
  options.train_steps = 4;
  options.export_strategies = {MakeExportStrategy()};
  const auto result = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->exports, ElementsAre("run/export/model/4"));
  EXPECT_THAT(*fs_.ListDirectory("run/export/model/4"),
              ElementsAre("checkpoint", "evaluation.json", "lockstep.textproto", "model.ckpt-4.data-00000-of-00001",
                          "model.ckpt-4.index", "model.npz", "model.safetensors"));
  const auto reader = BundleReader::Open(&fs_, "run/export/model/4/model.ckpt-4").value();
  EXPECT_THAT(reader->names(), ElementsAre("global_step", "logits/bias", "logits/kernel"));
  EXPECT_TRUE(reader->written_by_saver()) << "no run resumes from it";
  EXPECT_THAT(*ReadFile(&fs_, "run/export/model/4/evaluation.json"),
              testing::StartsWith("{\"step\": 4, \"metrics\": {\"accuracy\": "));
  for (const char* file : {"run/export/model/4/model.safetensors", "run/export/model/4/model.npz"}) {
    const auto weights = OpenTensors(&fs_, file).value();
    EXPECT_THAT(weights->names(), ElementsAre("logits/bias", "logits/kernel"));
    EXPECT_EQ(weights->Read("logits/kernel")->bytes(), reader->Read("logits/kernel")->bytes());
  }
  // Reads the export like `lockstep predict --export`.
  RecordedRunFlags flags;
  flags.exported = result->exports[0];
  std::ostringstream err;
  const auto evaluator = RunEvaluator::Create(&fs_, *flags.LoadConfig(&fs_), "test").value();
  EXPECT_TRUE(evaluator->PredictCheckpoint(*flags.FindCheckpoint(&fs_, err), {}, "answers.csv").ok());
  EXPECT_THAT(*ReadFile(&fs_, "answers.csv"), testing::StartsWith("example,label,class,output_0,"));
  flags.logdir = "run";
  EXPECT_EQ(flags.LoadConfig(&fs_).status().message(),
            "--export and --logdir exclude each other: an export has its own checkpoint");
  flags.logdir = "";
  flags.checkpoint = "run/model.ckpt-4";
  EXPECT_EQ(flags.LoadConfig(&fs_).status().message(),
            "--export and --checkpoint exclude each other: an export has its own checkpoint");
  flags.checkpoint = "";
  flags.exported = "run/export";
  EXPECT_THAT(std::string(flags.LoadConfig(&fs_).status().message()), HasSubstr("run/export is not an exported model"));
  flags.exported = "";
  flags.logdir = result->exports[0];
  EXPECT_FALSE(flags.FindCheckpoint(&fs_, err).ok()) << "it is no run's";
  // Exporting the same model again writes the same files.
  const std::string record = *ReadFile(&fs_, "run/export/model/4/lockstep.textproto");
  const std::string digest = DigestOf("run/export/model/4/model.ckpt-4");
  ASSERT_TRUE(Make(options)->TrainAndEvaluate().ok());
  EXPECT_EQ(*ReadFile(&fs_, "run/export/model/4/lockstep.textproto"), record);
  EXPECT_EQ(DigestOf("run/export/model/4/model.ckpt-4"), digest);
  flags = {};
  flags.exported = "run/export/model/4";
  flags.set = {"evaluation.split=train"};
  EXPECT_TRUE(flags.LoadConfig(&fs_).ok());
  for (const size_t length : {size_t{0}, record.size() / 2, record.size() - 3}) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "run/export/model/4/lockstep.textproto", record.substr(0, length)).ok());
    const absl::Status damage = flags.LoadConfig(&fs_).status();
    EXPECT_TRUE(absl::IsDataLoss(damage)) << length << ": " << damage;
    EXPECT_THAT(std::string(damage.message()), HasSubstr("the export run/export/model/4 is damaged"));
  }
}

TEST_F(TrainOpEstimatorTest, AnExportWaitsForThatOfAnotherProcess) {
  // Another process's export, which releases its lock at the third wait.
  class OtherExport : public JumpingClock {
   public:
    bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override {
      if (++waits == 3) lock.reset();
      return JumpingClock::WaitUntil(cv, mutex, deadline);
    }
    int waits = 0;
    std::unique_ptr<FileSystem::Lock> lock;
  } clock;
  const auto estimator = MakeEstimator();
  Estimator::TrainArguments training;
  training.max_steps = 4;
  ASSERT_TRUE(estimator->Train(training).ok());
  const EvaluationMetrics result = estimator->Evaluate({}).value();
  ASSERT_TRUE(fs_.CreateDirectory("exports").ok());
  clock.lock = fs_.LockFile("exports/export.lock").value();
  EXPECT_TRUE(ExportModel(&fs_, "run", result, "exports/4", &clock).ok());
  EXPECT_EQ(clock.waits, 3);
  StopSignal stop;
  stop.Request();
  clock.lock = fs_.LockFile("exports/export.lock").value();
  EXPECT_TRUE(absl::IsCancelled(ExportModel(&fs_, "run", result, "exports/4", &clock, &stop)));
}

TEST_F(TrainOpEstimatorTest, ExportsOfTwoProcessesDoNotMeet) {
  const auto estimator = MakeEstimator();
  Estimator::TrainArguments training;
  training.max_steps = 4;
  ASSERT_TRUE(estimator->Train(training).ok());
  const EvaluationMetrics result = estimator->Evaluate({}).value();
  for (int round = 0; round < 30; ++round) {
    const std::string directory = absl::StrCat("exports/", round);
    absl::Status other;
    std::thread thread([&] { other = ExportModel(&fs_, "run", result, directory); });
    const absl::Status status = ExportModel(&fs_, "run", result, directory);
    thread.join();
    ASSERT_TRUE(status.ok() && other.ok()) << status << other;
    ASSERT_EQ(fs_.ListDirectory(directory)->size(), 7u);
  }
}

TEST_F(TrainOpEstimatorTest, AnExportIsLeftAsItIsUnlessItIsNotTheSame) {
  const auto estimator = MakeEstimator();
  Estimator::TrainArguments training;
  training.max_steps = 4;
  ASSERT_TRUE(estimator->Train(training).ok());
  EvaluationMetrics result = estimator->Evaluate({}).value();
  const auto exported_at = [&](const EvaluationMetrics& of) {
    EXPECT_TRUE(estimator->Export("exports/4", of).ok());
    return fs_.NewRandomAccessFile("exports/4/model.npz").value()->change_time();
  };
  const absl::Time first = exported_at(result);
  const std::string digest = DigestOf("exports/4/model.ckpt-4");
  EXPECT_EQ(exported_at(result), first);
  ASSERT_TRUE(fs_.Remove("exports/4/lockstep.textproto").ok());
  const absl::Time completed = exported_at(result);
  EXPECT_GT(completed, first) << "it was not whole";
  // Damages the weights of the export.
  const std::vector<std::string> names = *fs_.ListDirectory("exports/4");
  for (const std::string& name : names) {
    if (absl::StrContains(name, ".data-")) fs_.FlipBits(JoinPath("exports/4", name), 20, 1);
  }
  const absl::Time mended = exported_at(result);
  EXPECT_GT(mended, completed);
  EXPECT_EQ(DigestOf("exports/4/model.ckpt-4"), digest);
  result.metrics["accuracy"] = 2;
  EXPECT_GT(exported_at(result), mended);
}

TEST_F(TrainOpEstimatorTest, AServerThatStartsAfterTheEndEnds) {
  Estimator::TrainArguments training;
  training.max_steps = 4;
  EXPECT_EQ(*MakeEstimator()->LastStep(), absl::nullopt) << "there is no run yet";
  ASSERT_TRUE(MakeEstimator()->Train(training).ok());
  EXPECT_EQ(*MakeEstimator()->LastStep(), 4);
  JumpingClock clock;
  options_.session.is_chief = false;
  options_.session.master = "unix:/no/such/folder/socket";
  options_.session.clock = &clock;
  ExperimentOptions server;
  server.estimator = TrainOpEstimator::Create(ConfigOf(R"({"task": {"type": "ps"}})", config_), options_).value();
  const absl::Status status = Experiment::Create(std::move(server)).value()->RunStdServer();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(clock.elapsed(), absl::Minutes(1)) << "a chief that continues the run may come later";
}

TEST_F(TrainOpEstimatorTest, AServerWaitsAsItsSessionConfigSays) {
  JumpingClock clock;
  options_.session.is_chief = false;
  options_.session.master = "unix:/no/such/folder/socket";
  options_.session.clock = &clock;
  config_.session_config.set_chief_wait_seconds(30);
  ExperimentOptions server;
  server.estimator = TrainOpEstimator::Create(ConfigOf(R"({"task": {"type": "ps"}})", config_), options_).value();
  const absl::Status status = Experiment::Create(std::move(server)).value()->RunStdServer();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(clock.elapsed(), absl::Minutes(1));
}

TEST_F(TrainOpEstimatorTest, EvaluatesSomeBatchesOfASplitAndTellsHooks) {
  class Recorder : public EvaluationHook {
   public:
    absl::Status Begin(const std::string& checkpoint) override {
      seen.push_back(checkpoint);
      return absl::OkStatus();
    }
    absl::Status AfterBatch(int64_t batches, int64_t examples) override {
      seen.push_back(absl::StrCat("batch ", batches, ", examples ", examples));
      return absl::OkStatus();
    }
    absl::Status End(const EvaluationMetrics& result) override {
      seen.push_back(absl::StrCat(result.global_step));
      return absl::OkStatus();
    }
    std::vector<std::string> seen;
  } hook;
  const auto estimator = MakeEstimator();
  EXPECT_TRUE(absl::IsNotFound(estimator->Evaluate({}).status())) << "no checkpoint yet";
  EXPECT_FALSE(*estimator->RunIsFinished());
  Estimator::TrainArguments training;
  training.max_steps = 4;
  ASSERT_TRUE(estimator->Train(training).ok());
  EXPECT_TRUE(*estimator->RunIsFinished());
  Estimator::EvaluateArguments evaluation;
  evaluation.split = "train";
  evaluation.steps = 1;
  evaluation.metrics = {"accuracy", "top_2"};
  evaluation.name = "few";
  evaluation.hooks = {&hook};
  const auto result = estimator->Evaluate(evaluation);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(hook.seen, ElementsAre("run/model.ckpt-4", "batch 1, examples 4", "4"));
  EXPECT_EQ(result->metrics.size(), 2u);
  EXPECT_EQ(result->metrics.at("accuracy") * 4, static_cast<int>(result->metrics.at("accuracy") * 4))
      << "of the four examples of one batch";
  EXPECT_EQ(fs_.ListDirectory("run/eval_few")->size(), 1u);
  evaluation.split = "nope";
  EXPECT_FALSE(estimator->Evaluate(evaluation).ok());
}

TEST_F(TrainOpEstimatorTest, AModelOfItsOwnIsEvaluatedByAFunction) {
  options_.session.op.make_workload = WorkloadFactoryOf(options_.session);
  EXPECT_THAT(ErrorOf(), HasSubstr("evaluate is missing"));
  options_.evaluate = [](const std::string& checkpoint,
                         const Estimator::EvaluateArguments&) -> absl::StatusOr<std::map<std::string, double>> {
    return std::map<std::string, double>{{"length", checkpoint.size()}};
  };
  ExperimentOptions options;
  options.train_steps = 4;
  const auto result = Make(options)->TrainAndEvaluate();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->evaluation->global_step, 4);
  EXPECT_EQ(result->evaluation->metrics.at("length"), 16);
}

TEST_F(TrainOpEstimatorTest, NamesWhatContradicts) {
  options_.session.is_chief = false;
  EXPECT_THAT(ErrorOf(), HasSubstr("session is that of a worker, and its RunConfig of the chief"));
  options_.session.is_chief = true;
  config_.session_config.set_lease_seconds(-1);
  EXPECT_THAT(ErrorOf(), HasSubstr("cluster.lease_seconds"));
  config_.session_config.Clear();
  options_.session.is_chief = false;
  options_.session.master = "grpc://a:1";
  config_.master = "grpc://b:1";
  EXPECT_THAT(ErrorOf(R"({"task": {"type": "worker", "index": 1}})"),
              HasSubstr("session has the master grpc://a:1, and the chief of its RunConfig is at \"grpc://b:1\""));
  options_.session.is_chief = true;
  options_.session.master = "";
  config_.master = absl::nullopt;
  options_.session.logdir = "elsewhere";
  EXPECT_THAT(ErrorOf(), HasSubstr("has the logdir elsewhere, and its RunConfig the model_dir run"));
  options_.session.logdir = "";
  config_.model_dir = "";
  EXPECT_THAT(ErrorOf(), HasSubstr("config has no model_dir"));
  EXPECT_THAT(ErrorOf(R"({"task": {"type": "evaluator"}})"), HasSubstr("config has no model_dir"));
}

}  // namespace
}  // namespace lockstep::train
