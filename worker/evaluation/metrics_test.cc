#include "lockstep/worker/evaluation/metrics.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::v1::ModelConfig Model(const std::string& text) {
  config::v1::ModelConfig model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

ExampleSpec Classes(int64_t classes) {
  ExampleSpec spec;
  spec.classes = classes;
  return spec;
}

ExampleSpec Targets(int64_t outputs) {
  ExampleSpec spec;
  spec.labels_dtype = v1::DT_FLOAT;
  spec.labels_shape = Shape({outputs});
  return spec;
}

// Predictions and their batch.
struct Predicted {
  Batch batch;
  Tensor predictions;
};

Predicted WithClasses(const std::vector<float>& predictions, const std::vector<int32_t>& labels,
                      const std::vector<float>& weights = {}) {
  const int64_t size = labels.size();
  const int64_t outputs = predictions.size() / size;
  Predicted result;
  result.batch.size = size;
  result.batch.labels = Tensor::FromValues<int32_t>({size}, labels);
  if (!weights.empty()) result.batch.weights = Tensor::FromValues<float>({size}, weights);
  result.predictions = Tensor::FromValues<float>({size, outputs}, predictions);
  return result;
}

Predicted WithTargets(int64_t outputs, const std::vector<float>& predictions, const std::vector<float>& targets) {
  Predicted result;
  result.batch.size = predictions.size() / outputs;
  result.batch.labels = Tensor::FromValues<float>({result.batch.size, outputs}, targets);
  result.predictions = Tensor::FromValues<float>({result.batch.size, outputs}, predictions);
  return result;
}

std::unique_ptr<Metric> Create(const std::string& name, const ExampleSpec& spec, const std::string& model = "") {
  auto metric = CreateMetric(name, Model(model), spec);
  EXPECT_TRUE(metric.ok()) << metric.status();
  return *std::move(metric);
}

MetricValue Of(std::unique_ptr<Metric> metric, const Predicted& predicted) {
  const absl::Status status = metric->Update({predicted.batch, predicted.predictions});
  EXPECT_TRUE(status.ok()) << status;
  return metric->Result();
}

TEST(MetricsTest, AccuracyCountsTheGreatestOutput) {
  const Predicted predicted = WithClasses({1, 2, 0, 3, 1, 1, 5, 5, 0, 0, 0, 9}, {1, 0, 1, 2});
  // The third example is a tie, which the first output wins.
  EXPECT_EQ(Of(Create("accuracy", Classes(3)), predicted).value, 0.75);
}

TEST(MetricsTest, AccuracyWeighsExamples) {
  EXPECT_EQ(Of(Create("accuracy", Classes(2)), WithClasses({1, 0, 0, 1}, {0, 0}, {3, 1})).value, 0.75);
  EXPECT_EQ(Of(Create("accuracy", Classes(2)), WithClasses({1, 0, 0, 1}, {0, 0}, {0, 1})).value, 0);
}

TEST(MetricsTest, AccuracyOfASingleOutputIsItsSign) {
  EXPECT_EQ(Of(Create("accuracy", Classes(2)), WithClasses({0.1f, -3, 0, 2}, {1, 0, 1, 0})).value, 0.5);
  EXPECT_EQ(Of(Create("accuracy", Targets(1)), WithTargets(1, {0.1f, -3, 0, 2}, {1, 0, 1, 0})).value, 0.5);
}

TEST(MetricsTest, PredictsClassOneAboveOneHalf) {
  const std::string model = "loss { log_loss {} }";
  const Predicted predicted = WithClasses({0.6f, 0.4f, 0.3f, 0.9f}, {1, 0, 1, 0});
  for (const char* metric : {"accuracy", "top_1", "confusion_matrix"}) {
    EXPECT_EQ(Of(Create(metric, Classes(2), model), predicted).value, 0.5) << metric;
  }
  EXPECT_EQ(Of(Create("accuracy", Targets(1), model), WithTargets(1, {0.6f, 0.4f, 0.3f, 0.9f}, {1, 0, 1, 0})).value,
            0.5);
  EXPECT_EQ(DefaultMetrics(Model(model), Targets(1))[0], "accuracy");
}

TEST(MetricsTest, FloatLabelAccuracyDependsOnTheLoss) {
  const Predicted predicted = WithTargets(2, {3, 1, 1, 2}, {1, 0, 0, 1});
  EXPECT_EQ(Of(Create("accuracy", Targets(2), "loss { sigmoid_cross_entropy {} }"), predicted).value, 0.5);
  EXPECT_EQ(Of(Create("accuracy", Targets(2), "loss { softmax_cross_entropy {} }"), predicted).value, 1);
}

TEST(MetricsTest, TopKCountsLabelsAmongTheGreatest) {
  const Predicted predicted = WithClasses({4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 5, 5, 5, 5}, {0, 1, 3, 2});
  EXPECT_EQ(Of(Create("top_1", Classes(4)), predicted).value, 0.25);
  EXPECT_EQ(Of(Create("top_2", Classes(4)), predicted).value, 0.5);
  EXPECT_EQ(Of(Create("top_3", Classes(4)), predicted).value, 0.75);
  EXPECT_EQ(Of(Create("top_5", Classes(4)), predicted).value, 1);
  EXPECT_EQ(Of(Create("top_5", Classes(4)), predicted).name, "top_5");
}

TEST(MetricsTest, RmseIsOverAllOutputs) {
  EXPECT_DOUBLE_EQ(Of(Create("rmse", Targets(2)), WithTargets(2, {1, 2, 3, 4}, {1, 0, 3, 1})).value,
                   std::sqrt((4.0 + 9.0) / 4));
}

TEST(MetricsTest, MeanLossWeighsBatchesByTheirExamples) {
  auto metric = Create("mean_loss", Classes(2));
  EXPECT_TRUE(metric->needs_loss());
  const Predicted three = WithClasses({1, 1, 1, 1, 1, 1}, {0, 0, 0});
  const Predicted one_of_two = WithClasses({1, 1, 1, 1}, {0, 0}, {0, 5});
  ASSERT_TRUE(metric->Update({three.batch, three.predictions, 1.0f}).ok());
  ASSERT_TRUE(metric->Update({one_of_two.batch, one_of_two.predictions, 5.0f}).ok());
  EXPECT_EQ(metric->Result().value, 2.0);
}

TEST(MetricsTest, AucOrdersScores) {
  EXPECT_EQ(Of(Create("auc", Classes(2)), WithClasses({1, 2, 3, 4}, {0, 0, 1, 1})).value, 1);
  EXPECT_EQ(Of(Create("auc", Classes(2)), WithClasses({4, 3, 2, 1}, {0, 0, 1, 1})).value, 0);
  EXPECT_EQ(Of(Create("auc", Classes(2)), WithClasses({1, 1, 1, 1}, {0, 1, 0, 1})).value, 0.5);
  EXPECT_EQ(Of(Create("auc", Classes(2)), WithClasses({1, 3, 2, 4}, {0, 0, 1, 1})).value, 0.75);
  // With two outputs, the score is their difference.
  EXPECT_EQ(Of(Create("auc", Classes(2)), WithClasses({9, 1, 0, 0, 5, 5, 1, 2}, {0, 0, 1, 1})).value, 0.875);
  EXPECT_EQ(Of(Create("auc", Targets(1)), WithTargets(1, {1, 3, 2, 4}, {0, 0, 1, 1})).value, 0.75);
}

TEST(MetricsTest, AucEqualsTheCountOverAllPairs) {
  const Philox philox(3, 3);
  std::vector<float> scores, weights;
  std::vector<int32_t> labels;
  for (int i = 0; i < 300; ++i) {
    const Philox::Block block = philox.At(i);
    scores.push_back(static_cast<float>(block[0] % 50));
    labels.push_back(block[1] % 3 == 0);
    weights.push_back(static_cast<float>(block[2] % 4));
  }
  double won = 0, pairs = 0;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 300; ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      const double weight = weights[i] * weights[j];
      pairs += weight;
      won += weight * (scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0);
    }
  }
  EXPECT_NEAR(Of(Create("auc", Classes(2)), WithClasses(scores, labels, weights)).value, won / pairs, 1e-12);
}

TEST(MetricsTest, UndefinedValuesAreNan) {
  for (const std::string name : {"accuracy", "top_5", "mean_loss", "auc", "confusion_matrix"}) {
    EXPECT_TRUE(std::isnan(Create(name, Classes(2))->Result().value)) << name;
  }
  EXPECT_TRUE(std::isnan(Create("rmse", Targets(1))->Result().value));
  EXPECT_TRUE(std::isnan(Of(Create("auc", Classes(2)), WithClasses({1, 2}, {1, 1})).value));
  EXPECT_TRUE(std::isnan(Of(Create("auc", Classes(2)), WithClasses({1, NAN}, {0, 1})).value));
}

TEST(MetricsTest, ConfusionMatrixCountsPredictions) {
  const MetricValue value =
      Of(Create("confusion_matrix", Classes(2)), WithClasses({9, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 9}, {0, 0, 1, 1}));
  EXPECT_EQ(value.classes, 3);
  EXPECT_THAT(value.matrix, ElementsAre(1, 1, 0, 0, 1, 1, 0, 0, 0));
  EXPECT_EQ(value.value, 0.5);
}

// The result is the same to the last bit for any split into batches.
TEST(MetricsTest, DoNotDependOnTheSplitIntoBatches) {
  const Philox philox(9, 9);
  constexpr int kSize = 97;
  const auto run = [&](const std::string& name, const ExampleSpec& spec, int64_t outputs, int batch_size) {
    auto metric = Create(name, spec);
    for (int first = 0; first < kSize; first += batch_size) {
      const int size = std::min(batch_size, kSize - first);
      std::vector<float> predictions, targets, weights;
      std::vector<int32_t> labels;
      for (int i = first; i < first + size; ++i) {
        for (int o = 0; o < outputs; ++o) {
          predictions.push_back(Philox::ToUniform(philox.At(i * 10 + o)[0]));
          targets.push_back(Philox::ToUniform(philox.At(i * 10 + o)[1]));
        }
        labels.push_back(philox.At(i * 10)[2] % 2);
        weights.push_back(Philox::ToUniform(philox.At(i * 10)[3]));
      }
      Predicted predicted = spec.labels_dtype == v1::DT_INT32 ? WithClasses(predictions, labels, weights)
                                                              : WithTargets(outputs, predictions, targets);
      EXPECT_TRUE(metric->Update({predicted.batch, predicted.predictions}).ok());
    }
    return metric->Result().value;
  };
  for (const int batch_size : {1, 7, 96}) {
    EXPECT_EQ(run("accuracy", Classes(3), 3, batch_size), run("accuracy", Classes(3), 3, kSize));
    EXPECT_EQ(run("confusion_matrix", Classes(3), 3, batch_size), run("confusion_matrix", Classes(3), 3, kSize));
    EXPECT_EQ(run("top_2", Classes(3), 3, batch_size), run("top_2", Classes(3), 3, kSize));
    EXPECT_EQ(run("rmse", Targets(4), 4, batch_size), run("rmse", Targets(4), 4, kSize));
    EXPECT_EQ(run("auc", Classes(2), 1, batch_size), run("auc", Classes(2), 1, kSize));
  }
}

TEST(MetricsTest, TheLossChoosesTheDefault) {
  EXPECT_THAT(DefaultMetrics(Model("loss { softmax_cross_entropy {} }"), Classes(3)),
              ElementsAre("accuracy", "mean_loss"));
  EXPECT_THAT(DefaultMetrics(Model("loss { sigmoid_cross_entropy {} }"), Targets(1)),
              ElementsAre("accuracy", "mean_loss"));
  EXPECT_THAT(DefaultMetrics(Model("loss { huber {} }"), Targets(1)), ElementsAre("rmse", "mean_loss"));
  EXPECT_THAT(DefaultMetrics(Model("registered: 'mine'"), Classes(2)), ElementsAre("accuracy", "mean_loss"));
  EXPECT_THAT(DefaultMetrics(Model("registered: 'mine'"), Targets(1)), ElementsAre("rmse", "mean_loss"));
  EXPECT_EQ(CreateMetrics({}, Model(""), Targets(1))->size(), 2);
  EXPECT_EQ(CreateMetrics({"auc", "accuracy", "top_5"}, Model(""), Classes(2))->size(), 3);
}

TEST(MetricsTest, RefusesUnknownAndUnsuitableNames) {
  const auto message = [](const std::string& name, const ExampleSpec& spec) {
    const absl::Status status = CreateMetric(name, config::v1::ModelConfig(), spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    return std::string(status.message());
  };
  for (const std::string name : {"precision", "top_0", "top_-1", "top_", "top_x", ""}) {
    EXPECT_THAT(message(name, Classes(3)), HasSubstr("unknown metric \"" + name + "\""));
  }
  EXPECT_THAT(message("rmse", Classes(3)), HasSubstr("needs float labels"));
  EXPECT_THAT(message("auc", Classes(3)), HasSubstr("needs two classes"));
  EXPECT_THAT(message("auc", Targets(2)), HasSubstr("needs two classes"));
  EXPECT_THAT(message("top_5", Targets(2)), HasSubstr("needs classes"));
  EXPECT_THAT(message("confusion_matrix", Classes(1 << 20)), HasSubstr("at most 16384 classes"));
}

TEST(MetricsTest, RefusesTensorsThatDoNotFit) {
  const auto update = [](const std::string& name, const ExampleSpec& spec, const Predicted& predicted) {
    return Create(name, spec)->Update({predicted.batch, predicted.predictions});
  };
  EXPECT_THAT(std::string(update("accuracy", Classes(2), WithClasses({1, 2, 3, 4}, {0, 2})).message()),
              HasSubstr("label 2, but the model has 2 outputs"));
  EXPECT_FALSE(update("accuracy", Classes(2), WithClasses({1, 2, 3, 4}, {0, -1})).ok());
  Predicted predicted = WithClasses({1, 2, 3, 4}, {0, 1});
  EXPECT_THAT(std::string(update("rmse", Targets(1), predicted).message()), HasSubstr("labels are int32 [2]"));
  predicted.predictions = Tensor::FromValues<float>({3}, {1, 2, 3});
  EXPECT_THAT(std::string(update("accuracy", Classes(2), predicted).message()), HasSubstr("the batch has 2 examples"));
  predicted = WithClasses({1, 2, 3, 4}, {0, 1});
  predicted.batch.weights = Tensor::FromValues<float>({1}, {1});
  EXPECT_THAT(std::string(update("accuracy", Classes(2), predicted).message()),
              HasSubstr("1 weights for a batch of 2"));
  EXPECT_FALSE(update("top_2", Classes(2), WithTargets(1, {1, 2}, {1, 2})).ok());
  EXPECT_FALSE(update("confusion_matrix", Classes(2), WithTargets(1, {1, 2}, {1, 2})).ok());
}

}  // namespace
}  // namespace lockstep
