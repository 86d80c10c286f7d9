// Tests Train with real chiefs and workers in this process, and with in-memory sessions for failures.
#include "lockstep/train/graph_actions/train.h"

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/events/png.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/hooks/monitors/monitors.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/local_workers.h"
#include "lockstep/train/testing/fake_opener.h"
#include "lockstep/train/testing/jumping_clock.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train::graph_actions {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kUnbounded[] = "replicas_to_aggregate: 2 unbounded: true";

// A model with replaced losses.
class LossModel : public ForwardingModel {
 public:
  using LossFunction = std::function<float(int64_t step)>;

  LossModel(std::unique_ptr<Model> model, LossFunction loss)
      : ForwardingModel(std::move(model)), loss_(std::move(loss)) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    Sink other(sink, loss_(key.step));
    return ForwardingModel::ComputeGradients(values, batch, key, &other);
  }

 private:
  class Sink : public ForwardingSink {
   public:
    Sink(GradientSink* sink, float loss) : ForwardingSink(sink), loss_(loss) {}
    bool OnLoss(float) override { return sink()->OnLoss(loss_); }

   private:
    const float loss_;
  };

  const LossFunction loss_;
};

// Records its calls.
class NotingMonitor : public Monitor {
 public:
  explicit NotingMonitor(bool on_all_workers = false) : on_all_workers_(on_all_workers) {}

  std::string name() const override { return "Noting"; }
  bool run_on_all_workers() const override { return on_all_workers_; }
  absl::Status Begin(absl::optional<int64_t> max_steps) override {
    calls_.push_back(max_steps ? absl::StrCat("begin ", *max_steps) : "begin");
    return Monitor::Begin(max_steps);
  }
  absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values) override {
    calls_.push_back(absl::StrCat("step ", step));
    if (!(step == fails_at_)) return Monitor::StepEnd(step, values);
    return error_;
  }
  absl::Status End(Session& session) override {
    calls_.push_back("end");
    return Monitor::End(session);
  }

  void FailAt(int64_t step, absl::Status error) {
    fails_at_ = step;
    error_ = std::move(error);
  }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  const bool on_all_workers_;
  int64_t fails_at_ = -1;
  absl::Status error_;
  std::vector<std::string> calls_;
};

class GraphActionsTrainTest : public ::testing::Test {
 protected:
  GraphActionsTrainTest() { options_ = Options(); }

  static TrainOp Op(const std::string& training = kUnbounded, const std::string& input = "") {
    return CreateTrainOp(absl::StrCat(R"(
             model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
             optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
             input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 )",
                                      input, "} training { ", training, "}"))
        .value();
  }
  TrainOptions Options() {
    TrainOptions options;
    options.session.op = Op();
    options.session.logdir = "run";
    options.session.fs = &fs_;
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    return options;
  }
  void SetLoss(LossModel::LossFunction loss) {
    options_.session.op.make_workload = [loss](const config::v1::RunSpec& spec) -> absl::StatusOr<Workload> {
      absl::StatusOr<Workload> workload = LoadWorkload(spec, {});
      if (workload.ok()) workload->model = std::make_unique<LossModel>(std::move(workload->model), loss);
      return workload;
    };
  }
  absl::optional<double> TrainWell() {
    const auto loss = Train(options_);
    EXPECT_TRUE(loss.ok()) << loss.status();
    return loss.value_or(absl::nullopt);
  }
  std::string TrainError() { return std::string(Train(options_).status().message()); }
  // Returns the step of the newest checkpoint.
  int64_t StoredStep() { return StepOfCheckpoint(LatestCheckpoint("run", "checkpoint", &fs_).value().value()).value(); }
  bool HasCheckpoint(int64_t step) { return fs_.Exists(absl::StrCat("run/model.ckpt-", step, ".index")).value(); }
  std::string DigestOf(int64_t step) {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat("run/model.ckpt-", step));
    return reader.ok() ? CheckpointDigest(**reader).value() : reader.status().ToString();
  }
  // Returns the events from all event files.
  std::vector<v1::Event> Events() {
    std::vector<v1::Event> events;
    const std::vector<std::string> names = fs_.ListDirectory("run").value();
    for (const std::string& name : names) {
      if (!absl::StrContains(name, "tfevents")) continue;
      const auto reader = RecordReader::Open(&fs_, JoinPath("run", name)).value();
      for (uint64_t offset = 0; offset < reader->size();) {
        std::string payload;
        offset = reader->ReadAt(offset, &payload).value().next;
        EXPECT_TRUE(events.emplace_back().ParseFromString(payload));
      }
    }
    return events;
  }
  // Returns the "loss" scalars as (step, value).
  std::map<int64_t, float> LossSummaries() {
    std::map<int64_t, float> losses;
    for (const v1::Event& event : Events()) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "loss") losses[event.step()] = value.simple_value();
      }
    }
    return losses;
  }
  // Opens in-memory sessions for a worker that computes these blocks.
  FakeOpener* OpenAsWorker(std::vector<StepResult> blocks) {
    options_.session.master = "grpc://chief:2222";
    options_.session.logdir.clear();
    FakeSession::Options worker;
    worker.chief = false;
    worker.blocks.assign(blocks.begin(), blocks.end());
    opener_.Add(worker);
    options_.session.open = opener_.opener();
    return &opener_;
  }
  static StepResult Block(int64_t step, double loss) {
    StepResult result;
    result.global_step = step;
    result.loss = loss;
    result.outcome = v1::CONTRIBUTION_ACCEPTED;
    return result;
  }

  MemoryFileSystem fs_;
  JumpingClock clock_;
  FakeOpener opener_;
  std::vector<std::string> lines_;
  TrainOptions options_;
};

TEST_F(GraphActionsTrainTest, GA02ArgumentsAreCheckedInOrder) {
  options_ = TrainOptions();
  options_.steps = options_.max_steps = 5;
  EXPECT_EQ(Train(options_).status(),
            absl::InvalidArgumentError("steps: is given beside max_steps; give one of the two"));
  options_.max_steps.reset();
  EXPECT_THAT(TrainError(), StartsWith("output_dir: "));
  options_.session.logdir = "run";
  options_.session.fs = &fs_;
  EXPECT_THAT(TrainError(), StartsWith("train_op: "));
  options_.session.op = Op();
  options_.session.op.spec.mutable_model()->clear_loss();
  EXPECT_THAT(TrainError(), StartsWith("loss_op: "));
  options_.session.op = Op();
  options_.steps = 0;
  EXPECT_THAT(TrainError(), AllOf(StartsWith("steps: 0"), HasSubstr("training.unbounded")));
  options_.steps = 5;
  options_.log_every_steps = -1;
  EXPECT_THAT(TrainError(), StartsWith("log_every_steps: -1"));
  options_.log_every_steps = 10;
  options_.monitors = {nullptr};
  EXPECT_TRUE(absl::IsInvalidArgument(Train(options_).status()));
  EXPECT_FALSE(fs_.Exists("run").value()) << "nothing has started";
}

TEST_F(GraphActionsTrainTest, InitOpSetsItsInputs) {
  options_.max_steps = 2;
  options_.session.program = "test";
  options_.init_feed_dict = {*NamedFloats("bias", {3}, {1, 2, 3})};
  EXPECT_THAT(TrainError(), HasSubstr("init_feed_dict: is for an init_op"));
  options_.init_op = kNone;
  options_.init_feed_dict.clear();
  EXPECT_THAT(TrainError(), HasSubstr("nothing initializes the model"));
  options_.init_feed_dict = {*NamedFloats("bias", {3}, {1, 2, 3})};
  options_.init_op = [](const v1::ModelSpec&, absl::Span<const NamedTensor> feed) -> absl::StatusOr<InitialValues> {
    return InitialValues{{{"logits/bias", feed[0].value}}, ""};
  };
  TrainWell();
  const Tensor bias = BundleReader::Open(&fs_, "run/model.ckpt-0").value()->Read("logits/bias").value();
  EXPECT_THAT(bias.flat<float>(), ElementsAre(1, 2, 3));
}

TEST_F(GraphActionsTrainTest, GA03ReturnsTheLossAndSavesTheLastStep) {
  SetLoss([](int64_t) { return 2.0f; });
  options_.steps = 1;
  EXPECT_EQ(TrainWell(), 2.0);
  const auto state = GetCheckpointState("run", "checkpoint", &fs_).value().value();
  EXPECT_EQ(state.model_checkpoint_path(), "run/model.ckpt-1");
  EXPECT_EQ(*state.all_model_checkpoint_paths().rbegin(), "run/model.ckpt-1");
}

TEST_F(GraphActionsTrainTest, TrainsAsynchronouslyByDefault) {
  options_.session.op = Op("replicas_to_aggregate: 1 unbounded: true");
  options_.session.local_workers = 2;
  options_.steps = 20;
  TrainWell();
  const Tensor positions =
      BundleReader::Open(&fs_, "run/model.ckpt-20").value()->Read("lockstep/stream_positions").value();
  int64_t contributions = 0;
  for (const int64_t position : positions.flat<int64_t>()) contributions += position;
  EXPECT_EQ(contributions, 20);
  options_.session.op = Op("replicas_to_aggregate: 1 deterministic {} unbounded: true");
  EXPECT_THAT(TrainError(), HasSubstr("policy ASYNC, and this configuration has policy DETERMINISTIC"));
}

TEST_F(GraphActionsTrainTest, GA04StepsAreSoManyMore) {
  options_.steps = 10;
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 10);
  options_.steps = 15;
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 25);
}

TEST_F(GraphActionsTrainTest, GA05MaxStepsIsABoundAndReachedRunsNoStep) {
  options_.session.op = Op("replicas_to_aggregate: 2 steps: 40");
  options_.max_steps = 10;
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 10);
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  EXPECT_EQ(TrainWell(), absl::nullopt);
  EXPECT_THAT(monitor.calls(), ElementsAre("begin 10", "end"));
  EXPECT_EQ(StoredStep(), 10);
  options_.monitors.clear();
  options_.max_steps = 15;
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 15);
}

TEST_F(GraphActionsTrainTest, GA07ReturnsTheLossOfTheLastStep) {
  SetLoss([](int64_t step) { return 9.0f - static_cast<float>(step); });
  options_.steps = 6;
  EXPECT_EQ(TrainWell(), 4.0);
}

TEST_F(GraphActionsTrainTest, InitFnSetsValuesOfANewRun) {
  int calls = 0;
  options_.session.program = "graph_actions_train_test";
  options_.session.init_fn = [&calls](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    ++calls;
    return InitialValues{{NamedFloats("logits/bias", {3}, {7, 8, 9}).value()}, ""};
  };
  for (const int64_t steps : {2, 4}) {
    options_.max_steps = steps;
    EXPECT_TRUE(TrainWell());
  }
  EXPECT_EQ(calls, 1) << "not of a run that is restored";
  const auto reader = BundleReader::Open(&fs_, "run/model.ckpt-0").value();
  EXPECT_THAT(reader->Read("logits/bias")->flat<float>(), ElementsAre(7, 8, 9));
}

TEST_F(GraphActionsTrainTest, TransformsOfTheOpStay) {
  int transformed = 0;
  options_.session.op.transform_model = [&](std::unique_ptr<Model> model) -> absl::StatusOr<std::unique_ptr<Model>> {
    ++transformed;
    return std::make_unique<LossModel>(std::move(model), [](int64_t) { return 2.0f; });
  };
  options_.steps = 1;
  EXPECT_EQ(TrainWell(), 2.0);
  EXPECT_EQ(transformed, 1);
  const WorkloadFactory fed = WorkloadFactoryOf(Options().session);
  const auto batches = std::make_shared<Workload>(fed(options_.session.op.spec).value());
  options_.feed_fn = [batches](int64_t step, int64_t slot) { return batches->batches->Get(step, slot); };
  options_.session.logdir = "fed";
  EXPECT_EQ(TrainWell(), 2.0);
  EXPECT_EQ(transformed, 2) << "once, with a feed_fn, too";
}

TEST_F(GraphActionsTrainTest, GA08WithoutMonitorsTheChiefWritesTheLoss) {
  SetLoss([](int64_t) { return 2.0f; });
  options_.steps = 1;
  TrainWell();
  EXPECT_THAT(LossSummaries(), ElementsAre(testing::Pair(1, 2.0f)));
  EXPECT_THAT(lines_, testing::Contains(StartsWith("loss = 2")));
}

TEST_F(GraphActionsTrainTest, WritesTheLossEverySoManySteps) {
  SetLoss([](int64_t) { return 2.0f; });
  options_.save_summaries_steps = 3;
  options_.max_steps = 8;
  TrainWell();
  EXPECT_THAT(LossSummaries(), ElementsAre(testing::Pair(1, 2.0f), testing::Pair(4, 2.0f), testing::Pair(7, 2.0f)));
}

TEST_F(GraphActionsTrainTest, SavesWithThePeriodThatIsGiven) {
  options_.session.open = opener_.opener();
  options_.save_model_period = absl::Seconds(30);
  options_.max_steps = 3;
  TrainWell();
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 30);
}

TEST_F(GraphActionsTrainTest, GA09AChiefsMonitorSeesEachStep) {
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  options_.max_steps = 4;
  TrainWell();
  EXPECT_THAT(monitor.calls(), ElementsAre("begin 4", "step 1", "step 2", "step 3", "step 4", "end"));
  EXPECT_THAT(LossSummaries(), IsEmpty()) << "the default monitors are not there";
}

TEST_F(GraphActionsTrainTest, GA10WorkersHaveAllMonitorsAndEndNone) {
  options_.session.is_chief = false;
  OpenAsWorker({Block(1, 3), Block(2, 2.5)});
  NotingMonitor chiefs(false), all(true);
  options_.monitors = {&chiefs, &all};
  EXPECT_EQ(TrainWell(), 2.5);
  EXPECT_THAT(chiefs.calls(), IsEmpty());
  EXPECT_THAT(all.calls(), ElementsAre("begin", "step 1", "step 2"));
  EXPECT_THAT(lines_, ElementsAre(StartsWith("training step 2, loss = 2.50000 ("))) << "its last one";
}

TEST_F(GraphActionsTrainTest, AHooksStopEndsTheRunAtItsStep) {
  class StopAtNine : public Hook {
   public:
    std::string name() const override { return "StopAtNine"; }
    absl::Status AfterRun(RunContext& context, const RunValues& values) override {
      if (values.result.global_step == 9) context.RequestStop("enough");
      return absl::OkStatus();
    }
    absl::Status End(Session&) override {
      ended = true;
      return absl::OkStatus();
    }
    bool ended = false;
  } hook;
  options_.session.local_workers = 2;
  options_.session.program = "graph_actions_train_test";
  options_.hooks = {&hook};
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 9);
  EXPECT_TRUE(hook.ended);
  options_.hooks = {nullptr};
  EXPECT_EQ(TrainError(), "hooks: one of them is null");
}

TEST_F(GraphActionsTrainTest, AMonitorsStopEndsTheRunAtItsStep) {
  StopAtStepOptions stop;
  stop.num_steps = 3;
  const auto monitor = StopAtStepMonitor::Create(stop).value();
  options_.monitors = {monitor.get()};
  options_.session.program = "graph_actions_train_test";
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 3);
}

TEST_F(GraphActionsTrainTest, AMonitorsSummariesMayHaveImages) {
  const auto provider = [](Session&, int64_t step) -> absl::StatusOr<v1::Summary> {
    SummaryBuilder builder;
    const absl::Status added = builder.AddImage("kernel", 1, 2, 1, {0, 255});
    if (!added.ok()) return added;
    return builder.Build(step).summary();
  };
  const auto monitor = SummarySaverMonitor::Create(provider, 100).value();
  options_.monitors = {monitor.get()};
  options_.max_steps = 2;
  TrainWell();
  std::vector<int64_t> steps;
  for (const v1::Event& event : Events()) {
    for (const auto& value : event.summary().value()) {
      if (!value.has_image()) continue;
      steps.push_back(event.step());
      EXPECT_EQ(value.tag(), "kernel");
      EXPECT_EQ(value.image().encoded_image_string(), EncodePng(1, 2, 1, {0, 255}).value());
    }
  }
  EXPECT_THAT(steps, ElementsAre(1, 2)) << "the first and the last";
}

TEST_F(GraphActionsTrainTest, GA12ANaNLossMayCountAndChangeNothingElse) {
  SetLoss([](int64_t step) { return step == 2 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(step); });
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  options_.fail_on_nan_loss = false;
  options_.max_steps = 5;
  options_.keep_checkpoint_max = 0;
  options_.session.op.spec.mutable_checkpoint()->set_every_steps(1);
  EXPECT_EQ(TrainWell(), 4.0);
  EXPECT_THAT(monitor.calls(), ElementsAre("begin 5", "step 1", "step 2", "step 3", "step 4", "step 5", "end"));
  // Compares values, because the digest contains the global step.
  const auto values = [&](int64_t step) {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat("run/model.ckpt-", step)).value();
    return std::string(reader->Read("logits/kernel")->bytes()) +
           std::string(reader->Read("logits/kernel/Momentum")->bytes());
  };
  EXPECT_EQ(values(3), values(2));
  EXPECT_NE(values(2), values(1));
  EXPECT_NE(values(4), values(3));
}

// GA-11
TEST_F(GraphActionsTrainTest, ANaNLossFailsTheRunByDefault) {
  SetLoss([](int64_t step) { return step == 2 ? std::numeric_limits<float>::quiet_NaN() : 1.0f; });
  options_.max_steps = 5;
  const absl::Status status = Train(options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the loss of step 3 is not finite"));
  EXPECT_EQ(ExitCodeOf(status), kExitFailed);
  EXPECT_EQ(StoredStep(), 2) << "the last finite step";
}

TEST_F(GraphActionsTrainTest, GA14TheEndOfTheFeedIsACleanEnd) {
  const std::shared_ptr<BatchSource> configured = std::move(LoadWorkload(options_.session.op.spec, {}).value().batches);
  options_.feed_fn = [configured](int64_t step, int64_t slot) -> absl::StatusOr<Batch> {
    if (step >= 4) return absl::OutOfRangeError("four batches");
    return configured->Get(step, slot);
  };
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 4);
  const std::string fed = DigestOf(4);
  // Only the fed batches count: the same batches from a regular input produce the same bits.
  options_ = Options();
  options_.session.logdir = "unfed";
  options_.max_steps = 4;
  TrainWell();
  const auto reader = BundleReader::Open(&fs_, "unfed/model.ckpt-4").value();
  EXPECT_EQ(CheckpointDigest(*reader).value(), fed);
}

TEST_F(GraphActionsTrainTest, GA15TheEndOfTheInputIsACleanEnd) {
  // A step takes 8 of 96 examples, so an epoch has 12 steps.
  options_.session.op = Op(kUnbounded, "epochs: 1");
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(StoredStep(), 12);
}

TEST_F(GraphActionsTrainTest, GA17AnErrorIsReturnedAndTheLastStepSaved) {
  NotingMonitor monitor;
  monitor.FailAt(7, absl::UnavailableError("gone"));
  options_.monitors = {&monitor};
  options_.recovery.max_attempts = 0;
  options_.max_steps = 20;
  const absl::Status status = Train(options_).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("gone"));
  EXPECT_EQ(StoredStep(), 7);
  EXPECT_EQ(monitor.calls().back(), "step 7") << "no end";
}

TEST_F(GraphActionsTrainTest, AbortedOpensASessionWithoutBegin) {
  options_.session.clock = &clock_;
  options_.session.open = opener_.opener();
  FakeSession::Options chief;
  chief.total_steps = 3;
  opener_.Add(chief);
  opener_.set_on_open([](int index, FakeSession& session) {
    if (index == 0) session.FailNextRun(absl::AbortedError("restarted"));
  });
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  options_.max_steps = 3;
  EXPECT_TRUE(TrainWell());
  EXPECT_EQ(opener_.opened(), 2);
  EXPECT_THAT(monitor.calls(), ElementsAre("begin 3", "step 1", "step 2", "step 3", "end"));
}

TEST_F(GraphActionsTrainTest, GA18LogsTheLossPeriodicallyAndLast) {
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  options_.session.clock = &clock_;
  options_.session.open = opener_.opener();
  FakeSession::Options chief;
  chief.total_steps = 25;
  chief.loss = [](int64_t step) { return static_cast<double>(step) / 8; };
  opener_.Add(chief);
  options_.log_every_steps = 12;
  options_.max_steps = 25;
  EXPECT_EQ(TrainWell(), 3.125);
  EXPECT_THAT(lines_, ElementsAre("training step 12, loss = 1.50000 (0.000 sec/batch).",
                                  "training step 24, loss = 3.00000 (0.000 sec/batch).",
                                  "training step 25, loss = 3.12500 (0.000 sec/batch)."));
}

TEST_F(GraphActionsTrainTest, GA21KeepCheckpointMaxZeroKeepsAll) {
  options_.session.op.spec.mutable_checkpoint()->set_every_steps(1);
  options_.keep_checkpoint_max = 0;
  options_.max_steps = 8;
  TrainWell();
  for (int64_t step = 0; step <= 8; ++step) EXPECT_TRUE(HasCheckpoint(step)) << step;
  options_.keep_checkpoint_max = 2;
  options_.max_steps = 12;
  TrainWell();
  EXPECT_TRUE(HasCheckpoint(12));
  EXPECT_FALSE(HasCheckpoint(9));
}

// GA-23: the worker's bound comes from the run, not from the file that it finds.
TEST_F(GraphActionsTrainTest, GA23AWorkerEndsWithTheRunWhateverItsOwnSteps) {
  options_.session.is_chief = false;
  OpenAsWorker({Block(181, 1), Block(260, 0.5)});
  options_.steps = 50;
  EXPECT_EQ(TrainWell(), 0.5);
}

// A session whose Close fails.
class UnclosedSession : public SessionDecorator {
 public:
  explicit UnclosedSession(std::unique_ptr<Session> session)
      : SessionDecorator(session.get()), session_(std::move(session)) {}
  absl::Status Close() override {
    session_->Close().IgnoreError();
    return absl::InternalError("the disk is full");
  }

 private:
  const std::unique_ptr<Session> session_;
};

TEST_F(GraphActionsTrainTest, GA24ReturnsTheLoopsErrorFirst) {
  options_.session.open = [](const SessionOptions& options) -> absl::StatusOr<HeldSession> {
    absl::StatusOr<HeldSession> held = OpenHeldSession(options);
    if (held.ok()) held->session = std::make_unique<UnclosedSession>(std::move(held->session));
    return held;
  };
  options_.max_steps = 5;
  NotingMonitor monitor;
  options_.monitors = {&monitor};
  monitor.FailAt(2, absl::InternalError("the body"));
  EXPECT_THAT(TrainError(), HasSubstr("the body"));
  monitor.FailAt(-1, absl::OkStatus());
  NotingMonitor another;
  options_.monitors = {&another};
  EXPECT_THAT(TrainError(), HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace lockstep::train::graph_actions
