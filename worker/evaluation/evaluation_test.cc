#include "lockstep/worker/evaluation/evaluation.h"

#include <cfenv>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/formats/synthetic.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that predicts the features. The loss is the mean of the first feature. Records the batch sizes.
class Echo : public Model {
 public:
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink*) override {
    return absl::UnimplementedError("not trained");
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    sizes.push_back(batch.size);
    if (fails) return absl::InvalidArgumentError("the batch does not fit");
    return batch.features;
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    ++losses;
    double sum = 0;
    for (int64_t i = 0; i < batch.size; ++i) sum += batch.features.flat<float>()[i * 3];
    return static_cast<float>(sum / batch.size);
  }

  std::vector<int64_t> sizes;
  int losses = 0;
  bool fails = false;

 private:
  const v1::ModelSpec spec_;
};

// Creates clusters of 3 features and 3 classes.
std::unique_ptr<Dataset> Clusters(int64_t examples) {
  config::v1::InputConfig::Synthetic config;
  config.set_examples(examples);
  config.set_classes(3);
  config.add_shape(3);
  return *CreateSyntheticDataset(config, 1);
}

std::vector<std::unique_ptr<Metric>> Metrics(const std::vector<std::string>& names, const Dataset& dataset) {
  return *CreateMetrics(names, config::v1::ModelConfig(), dataset.spec());
}

EvaluationOptions Options(int64_t batch_size) {
  EvaluationOptions options;
  options.batch_size = batch_size;
  return options;
}

TEST(EvaluationTest, CountsEveryExampleAtAnyBatchSize) {
  const auto dataset = Clusters(103);
  std::vector<double> accuracies, losses;
  for (const int64_t batch_size : {1, 10, 103, 1000}) {
    Echo model;
    const auto result =
        Evaluate(&model, {}, *dataset, Metrics({"accuracy", "mean_loss"}, *dataset), Options(batch_size));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->examples, 103);
    accuracies.push_back(result->Find("accuracy")->value);
    losses.push_back(result->Find("mean_loss")->value);
    if (batch_size == 10) {
      EXPECT_THAT(model.sizes, ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 3));
    }
  }
  EXPECT_GT(accuracies[0], 0.1);
  EXPECT_LT(accuracies[0], 0.9);
  for (const double accuracy : accuracies) EXPECT_EQ(accuracy, accuracies[0]);
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-6);
}

// A model that changes the rounding mode during a batch, as a library that is loaded then may do.
class RoundsUp : public Echo {
 public:
  explicit RoundsUp(int64_t in_batch) : in_batch_(in_batch) {}
  ~RoundsUp() override { std::fesetround(FE_TONEAREST); }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    if (static_cast<int64_t>(sizes.size()) == in_batch_) std::fesetround(FE_UPWARD);
    return Echo::Predict(std::move(values), batch);
  }

 private:
  const int64_t in_batch_;
};

TEST(EvaluationTest, AModelGetsTheNumbersOfItsTraining) {
  const auto dataset = Clusters(12);
  for (const int64_t in_batch : {0, 2}) {
    RoundsUp model(in_batch);
    const auto result = Evaluate(&model, {}, *dataset, Metrics({"accuracy"}, *dataset), Options(4));
    EXPECT_TRUE(absl::IsFailedPrecondition(result.status())) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("round"));
    EXPECT_EQ(static_cast<int64_t>(model.sizes.size()), in_batch + 1) << "no batch after it";
  }
}

TEST(EvaluationTest, ComputesTheLossOnlyWhenAskedFor) {
  const auto dataset = Clusters(8);
  Echo model;
  ASSERT_TRUE(Evaluate(&model, {}, *dataset, Metrics({"accuracy"}, *dataset), Options(4)).ok());
  EXPECT_EQ(model.losses, 0);
  ASSERT_TRUE(Evaluate(&model, {}, *dataset, Metrics({"mean_loss"}, *dataset), Options(4)).ok());
  EXPECT_EQ(model.losses, 2);
}

TEST(EvaluationTest, StopsAfterTheBatchesThatWereAskedFor) {
  const auto dataset = Clusters(100);
  Echo model;
  EvaluationOptions options = Options(8);
  options.max_batches = 3;
  EXPECT_EQ(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), options)->examples, 24);
  // EVAL-03: it is not an error if the input ends before max_batches.
  options.max_batches = 50;
  EXPECT_EQ(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), options)->examples, 100);
}

TEST(EvaluationTest, EndsWhenCancelled) {
  const auto dataset = Clusters(100);
  Echo model;
  EvaluationOptions options = Options(10);
  options.cancelled = [&] { return model.sizes.size() == 4; };
  const absl::Status status = Evaluate(&model, {}, *dataset, Metrics({}, *dataset), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("example 40 of 100"));
}

TEST(EvaluationTest, CountsAfterEachBatch) {
  const auto dataset = Clusters(10);
  Echo model;
  std::vector<std::pair<int64_t, int64_t>> counts;
  EvaluationOptions options = Options(4);
  options.after_batch = [&](int64_t batches, int64_t examples) {
    counts.emplace_back(batches, examples);
    return counts.size() < 4 ? absl::OkStatus() : absl::InternalError("enough");
  };
  ASSERT_TRUE(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), options).ok());
  EXPECT_THAT(counts, ElementsAre(std::make_pair(1, 4), std::make_pair(2, 8), std::make_pair(3, 10)));
  EXPECT_TRUE(absl::IsInternal(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), options).status()));
}

TEST(EvaluationTest, HandsOnErrors) {
  const auto dataset = Clusters(10);
  Echo model;
  model.fails = true;
  EXPECT_EQ(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), Options(4)).status().message(),
            "the batch does not fit");
  EXPECT_EQ(Evaluate(&model, {}, *dataset, Metrics({}, *dataset), Options(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EvaluationTest, WritesOneLine) {
  EvaluationResult result;
  result.examples = 10000;
  result.metrics.resize(2);
  result.metrics[0].name = "accuracy";
  result.metrics[0].value = 0.84512;
  result.metrics[1].name = "mean_loss";
  result.metrics[1].value = 0.44119;
  EXPECT_EQ(result.ToString(), "10000 examples: accuracy 0.8451, mean_loss 0.4412");
  EXPECT_EQ(result.Find("auc"), nullptr);
}

}  // namespace
}  // namespace lockstep
