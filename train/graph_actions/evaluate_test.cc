#include "lockstep/train/graph_actions/evaluate.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/graph_actions/graph_actions.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep::train::graph_actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

class GraphActionsEvaluateTest : public ::testing::Test {
 protected:
  GraphActionsEvaluateTest() {
    op_ = CreateTrainOp(R"(
            model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
            optimizer { sgd {} learning_rate { initial: 0.1 } }
            input {
              split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } }
              split { name: "test" synthetic { examples: 30 shape: 4 classes: 3 } }
              batch_size: 4
            }
            training { steps: 5 }
          )")
              .value();
    options_.op = op_;
    options_.output_dir = "eval";
    options_.fs = &fs_;
    options_.clock = &clock_;
    options_.log = [this](const std::string& line) { lines_.push_back(line); };
  }

  // Trains a model and returns the prefix of its checkpoint.
  std::string Trained() {
    TrainOptions train;
    train.session.op = op_;
    train.session.logdir = "run";
    train.session.fs = &fs_;
    EXPECT_TRUE(Train(train).ok());
    return "run/model.ckpt-5";
  }
  // Returns a batch with one example, all of whose features are `value`.
  static Batch BatchOf(float value) {
    Batch batch;
    batch.size = 1;
    batch.features = Tensor::FromValues<float>(Shape({1, 4}), {value, value, value, value});
    batch.labels = Tensor::FromValues<int32_t>(Shape({1}), {0});
    return batch;
  }
  // Feeds batches with the values 0, 10, 20, ..., and ends the input after `count` batches.
  void Feed(int64_t count) {
    options_.feed_fn = [count](int64_t step) -> absl::StatusOr<Batch> {
      if (step >= count) return absl::OutOfRangeError("no more");
      return BatchOf(10 * static_cast<float>(step));
    };
    options_.eval_dict["a"] = [](RestoredModel&, const Batch* batch) -> absl::StatusOr<EvalValue> {
      return EvalValue(5.0 + (batch == nullptr ? 0 : batch->features.flat<float>()[0]));
    };
  }
  // Returns "tag value @step" for each value in the event file.
  std::vector<std::string> Summaries() {
    std::vector<std::string> summaries;
    const std::vector<std::string> names = fs_.ListDirectory("eval").value();
    for (const std::string& name : names) {
      const auto reader = RecordReader::Open(&fs_, JoinPath("eval", name)).value();
      for (uint64_t offset = 0; offset < reader->size();) {
        std::string payload;
        offset = reader->ReadAt(offset, &payload).value().next;
        v1::Event event;
        EXPECT_TRUE(event.ParseFromString(payload));
        for (const auto& value : event.summary().value()) {
          summaries.push_back(absl::StrCat(value.tag(), " ", value.simple_value(), " @", event.step()));
        }
      }
    }
    return summaries;
  }
  std::string EvaluateError() { return std::string(Evaluate(options_).status().message()); }
  double Number(const EvaluateResult& result, const std::string& name) {
    return std::get<double>(result.results.at(name).value());
  }

  MemoryFileSystem fs_;
  SimulatedClock clock_;
  TrainOp op_;
  EvaluateOptions options_;
  std::vector<std::string> lines_;
};

TEST_F(GraphActionsEvaluateTest, EVAL01ReturnsAndWritesTheResults) {
  options_.eval_dict["a"] = [](RestoredModel&, const Batch*) -> absl::StatusOr<EvalValue> { return EvalValue(6.0); };
  options_.max_steps = 1;
  const auto result = Evaluate(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Number(*result, "a"), 6);
  EXPECT_EQ(result->global_step, 0);
  EXPECT_THAT(Summaries(), ElementsAre("a 6 @0"));
}

TEST_F(GraphActionsEvaluateTest, TheModelIsTheOneThatTheOpTransforms) {
  options_.op.transform_model = [](std::unique_ptr<Model>) -> absl::StatusOr<std::unique_ptr<Model>> {
    return absl::UnimplementedError("transformed");
  };
  EXPECT_EQ(EvaluateError(), "transformed");
}

TEST_F(GraphActionsEvaluateTest, EVAL02TheLastStepsResultCounts) {
  Feed(10);
  options_.max_steps = 3;
  EXPECT_EQ(Number(*Evaluate(options_), "a"), 25);
}

TEST_F(GraphActionsEvaluateTest, EVAL03TheEndOfTheFeedIsNoError) {
  Feed(2);
  options_.max_steps = 3;
  EXPECT_EQ(Number(*Evaluate(options_), "a"), 15);
}

TEST_F(GraphActionsEvaluateTest, EVAL05WrongArgumentsAreNamed) {
  options_.output_dir.clear();
  EXPECT_THAT(EvaluateError(), StartsWith("output_dir: is empty"));
  options_.output_dir = "eval";
  options_.max_steps = -1;
  EXPECT_THAT(EvaluateError(), StartsWith("max_steps: -1"));
  options_.max_steps.reset();
  options_.split = "validation";
  EXPECT_THAT(EvaluateError(), HasSubstr("no split \"validation\""));
  options_.split.clear();
  options_.op.spec.mutable_input()->mutable_split()->RemoveLast();
  EXPECT_THAT(EvaluateError(), StartsWith("max_steps: must be given"));
  EXPECT_FALSE(fs_.Exists("eval").value());
}

TEST_F(GraphActionsEvaluateTest, EVAL06OnlyNumbersAreWritten) {
  options_.max_steps = 1;
  const std::map<std::string, EvalValue> values = {
      {"a", EvalValue(1.5)}, {"b", EvalValue(std::string("x"))}, {"c", absl::nullopt}};
  for (const auto& [name, value] : values) {
    options_.eval_dict[name] = [value = value](RestoredModel&, const Batch*) -> absl::StatusOr<EvalValue> {
      return value;
    };
  }
  const auto result = Evaluate(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->results, values);
  EXPECT_THAT(Summaries(), ElementsAre("a 1.5 @0"));
}

TEST_F(GraphActionsEvaluateTest, NoStepsEvaluateOnceWithoutABatch) {
  Feed(3);
  options_.max_steps = 0;
  EXPECT_EQ(Number(*Evaluate(options_), "a"), 5);
}

TEST_F(GraphActionsEvaluateTest, AnUpdateComputesResultsOnRequest) {
  Feed(5);
  int computed = 0;
  double sum = 0;
  options_.eval_dict["a"] = [&](RestoredModel&, const Batch*) -> absl::StatusOr<EvalValue> {
    ++computed;
    return EvalValue(sum);
  };
  options_.update_op = [&](RestoredModel&, const Batch* batch) {
    sum += batch->features.flat<float>()[0];
    return absl::OkStatus();
  };
  options_.log_every_steps = 3;
  EXPECT_EQ(Number(*Evaluate(options_), "a"), 100) << "the last batch counts once";
  EXPECT_EQ(computed, 2);
  EXPECT_THAT(lines_, ElementsAre("Results after 3 steps (0.000 sec/batch): a = 30."));
}

TEST_F(GraphActionsEvaluateTest, ACheckpointsMetricsOverTheSplit) {
  options_.checkpoint_path = Trained();
  options_.metrics = {"accuracy", "mean_loss"};
  options_.batch_size = 7;
  const auto small = Evaluate(options_);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->global_step, 5);
  EXPECT_EQ(small->results.size(), 2u);
  options_.batch_size = 256;
  const auto whole = Evaluate(options_);
  EXPECT_EQ(Number(*small, "accuracy"), Number(*whole, "accuracy"));
  EXPECT_NEAR(Number(*small, "mean_loss"), Number(*whole, "mean_loss"), 1e-6);
  // Computes the loss of the only batch by hand.
  options_.metrics.clear();
  options_.eval_dict["loss"] = [](RestoredModel& model, const Batch* batch) -> absl::StatusOr<EvalValue> {
    return EvalValue(model.EvaluateLoss(*batch).value());
  };
  EXPECT_NEAR(Number(*Evaluate(options_), "loss"), Number(*whole, "mean_loss"), 1e-6);
}

TEST_F(GraphActionsEvaluateTest, ErrorsAreNamed) {
  options_.checkpoint_path = "run/model.ckpt-7";
  EXPECT_TRUE(absl::IsNotFound(Evaluate(options_).status()));
  options_.checkpoint_path.clear();
  options_.eval_dict["a"] = [](RestoredModel& model, const Batch*) -> absl::StatusOr<EvalValue> {
    return model.Variable("logits/weights").status();
  };
  const absl::Status status = Evaluate(options_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "eval_dict a: the model has no variable logits/weights");
}

class GraphActionsRunTest : public GraphActionsEvaluateTest {
 protected:
  GraphActionsRunTest() {
    run_.op = op_;
    run_.fs = &fs_;
  }
  RunOptions run_;
  const Outputs outputs_ = {{"logits", Predictions()}, {"loss", Loss()}, {"bias", VariableValue("logits/bias")}};
};

TEST_F(GraphActionsRunTest, RunNComputesTheOutputsNTimes) {
  run_.checkpoint_path = Trained();
  const Batch batch = BatchOf(1);
  const auto results = RunN(run_, outputs_, &batch, 3);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 3u);
  for (const OutputValues& values : *results) {
    EXPECT_EQ(values.at("logits").shape(), Shape({1, 3}));
    EXPECT_EQ(values.at("logits").bytes(), (*results)[0].at("logits").bytes());
    EXPECT_EQ(values.at("loss").num_elements(), 1);
    EXPECT_EQ(values.at("bias").num_elements(), 3);
  }
  EXPECT_EQ(Infer(run_, outputs_, &batch)->at("loss").bytes(), (*results)[0].at("loss").bytes());
  EXPECT_EQ(RunN(run_, {{"bias", VariableValue("logits/bias")}})->size(), 1u) << "nothing needs to be fed";
  EXPECT_EQ(RunN(run_, outputs_, nullptr, 0)->size(), 0u);
}

TEST_F(GraphActionsRunTest, InferNeedsNoTrainingData) {
  run_.checkpoint_path = Trained();
  Batch batch = BatchOf(1);
  const auto expected = Infer(run_, outputs_, &batch);
  ASSERT_TRUE(expected.ok()) << expected.status();
  config::v1::RunSpec spec = op_.spec;
  spec.mutable_input()->mutable_split(0)->mutable_csv()->add_file("gone.csv");
  spec.mutable_input()->mutable_split(0)->mutable_csv()->add_column()->set_name("x");
  run_.op.spec = spec;
  EXPECT_FALSE(RunN(run_, {{"bias", VariableValue("logits/bias")}}).ok()) << "nothing is fed";
  const auto values = Infer(run_, outputs_, &batch);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->at("logits").bytes(), expected->at("logits").bytes());
  EXPECT_EQ(values->at("loss").bytes(), expected->at("loss").bytes());
  batch.labels = Tensor();
  const auto unlabelled = Infer(run_, {{"logits", Predictions()}}, &batch);
  ASSERT_TRUE(unlabelled.ok()) << unlabelled.status();
  EXPECT_EQ(unlabelled->at("logits").bytes(), expected->at("logits").bytes());
  options_.op.spec = spec;
  options_.checkpoint_path = run_.checkpoint_path;
  EXPECT_TRUE(Evaluate(options_).ok()) << "its own split alone is read";
}

// A model that leaves the types of its variables out.
class UntypedModel : public ForwardingModel {
 public:
  explicit UntypedModel(std::unique_ptr<Model> model) : ForwardingModel(std::move(model)) {
    spec_ = ForwardingModel::spec();
    for (v1::VariableSpec& variable : *spec_.mutable_variables()) variable.clear_dtype();
  }
  const v1::ModelSpec& spec() const override { return spec_; }

 private:
  v1::ModelSpec spec_;
};

TEST_F(GraphActionsRunTest, AVariableWithoutATypeIsFloat32) {
  const Batch batch = BatchOf(1);
  const auto expected = Infer(run_, outputs_, &batch);
  ASSERT_TRUE(expected.ok()) << expected.status();
  run_.op.transform_model = [](std::unique_ptr<Model> model) -> absl::StatusOr<std::unique_ptr<Model>> {
    return std::make_unique<UntypedModel>(std::move(model));
  };
  const auto values = Infer(run_, outputs_, &batch);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->at("logits").bytes(), expected->at("logits").bytes());
}

TEST_F(GraphActionsRunTest, RunFeedsComputesThemForEachBatch) {
  const std::vector<Batch> feeds = {BatchOf(1), BatchOf(2)};
  const auto results = RunFeeds(run_, outputs_, feeds);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_NE((*results)[0].at("logits").bytes(), (*results)[1].at("logits").bytes());
  size_t next = 0;
  std::vector<std::string> one_by_one;
  const auto feed = [&]() -> absl::StatusOr<Batch> {
    if (next == feeds.size()) return absl::OutOfRangeError("no more");
    return feeds[next++];
  };
  ASSERT_TRUE(RunFeedsIter(run_, outputs_, feed, [&](OutputValues values) {
                one_by_one.emplace_back(values.at("logits").bytes());
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(one_by_one, ElementsAre((*results)[0].at("logits").bytes(), (*results)[1].at("logits").bytes()));
  next = 0;
  EXPECT_EQ(RunFeedsIter(run_, outputs_, feed, [](OutputValues) { return absl::InternalError("enough"); }),
            absl::InternalError("enough"));
  EXPECT_EQ(next, 1u);
}

TEST_F(GraphActionsRunTest, WrongArgumentsAreNamed) {
  EXPECT_THAT(std::string(RunN(run_, {}).status().message()), StartsWith("output_dict: "));
  EXPECT_THAT(std::string(RunN(run_, outputs_, nullptr, -1).status().message()), StartsWith("n: -1"));
  const absl::Status unfed = Infer(run_, outputs_).status();
  EXPECT_EQ(unfed, absl::InvalidArgumentError("output logits: feed: there is none, and predictions need a batch"));
  run_.checkpoint_path = "nowhere/model.ckpt-1";
  EXPECT_TRUE(absl::IsNotFound(Infer(run_, outputs_).status()));
}

}  // namespace
}  // namespace lockstep::train::graph_actions
