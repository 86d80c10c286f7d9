#include "lockstep/worker/evaluation/metric_registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/evaluation/metrics.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A metric that sums all features, adds the last loss, and reports the result under another metric's name.
class FeatureSum : public Metric {
 public:
  bool needs_loss() const override { return true; }
  absl::Status Update(const MetricInput& input) override {
    for (const float feature : input.batch.features.flat<float>()) sum_ += feature;
    loss_ = input.loss;
    return absl::OkStatus();
  }
  MetricValue Result() const override {
    MetricValue value;
    value.name = "accuracy";
    value.value = sum_ + loss_;
    value.classes = 1;
    value.matrix = {1};
    return value;
  }

 private:
  double sum_ = 0;
  double loss_ = 0;
};

REGISTER_METRIC("feature_sum",
                [](const config::v1::ModelConfig& model,
                   const ExampleSpec& examples) -> absl::StatusOr<std::unique_ptr<Metric>> {
                  if (!model.registered().empty()) return absl::InvalidArgumentError("only for layers");
                  if (examples.features_dtype != v1::DT_FLOAT) return absl::InvalidArgumentError("only for floats");
                  return std::make_unique<FeatureSum>();
                });

TEST(MetricRegistryTest, MakesARegisteredMetricUnderItsName) {
  auto metric = CreateMetric("registered:feature_sum", config::v1::ModelConfig(), ExampleSpec());
  ASSERT_EQ(metric.status(), absl::OkStatus());
  EXPECT_TRUE((*metric)->needs_loss());
  Batch batch;
  batch.size = 2;
  batch.features = Tensor::FromValues<float>(Shape({2, 1}), {1.5f, 2});
  ASSERT_TRUE((*metric)->Update({batch, Tensor(), 0.25f}).ok());
  const MetricValue value = (*metric)->Result();
  EXPECT_EQ(value.name, "feature_sum");
  EXPECT_EQ(value.value, 3.75);
  EXPECT_TRUE(value.matrix.empty());
}

TEST(MetricRegistryTest, EachEvaluationHasANewOne) {
  for (int i = 0; i < 2; ++i) {
    auto metrics = CreateMetrics({"registered:feature_sum"}, config::v1::ModelConfig(), ExampleSpec());
    ASSERT_EQ(metrics.status(), absl::OkStatus());
    EXPECT_EQ(metrics->at(0)->Result().value, 0);
    Batch batch;
    batch.features = Tensor::FromValues<float>(Shape({1}), {1});
    ASSERT_TRUE(metrics->at(0)->Update({batch, Tensor(), 0}).ok());
  }
}

TEST(MetricRegistryTest, ReturnsTheFactorysErrorWithTheField) {
  config::v1::ModelConfig registered;
  registered.set_registered("mine");
  EXPECT_EQ(CreateMetrics({"accuracy", "registered:feature_sum"}, registered, ExampleSpec()).status(),
            absl::InvalidArgumentError("evaluation.metric[1]: only for layers"));
  ExampleSpec ids;
  ids.features_dtype = v1::DT_INT32;
  EXPECT_EQ(CreateMetric("registered:feature_sum", config::v1::ModelConfig(), ids).status(),
            absl::InvalidArgumentError("only for floats"));
}

TEST(MetricRegistryTest, UnknownMetricListsTheRegistered) {
  EXPECT_THAT(RegisteredMetrics(), Contains("feature_sum"));
  const absl::Status status = CreateMetrics({"registered:f1"}, config::v1::ModelConfig(), ExampleSpec()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("evaluation.metric[0]: registered is \"f1\", a metric that this program lacks; it has "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("feature_sum"));
}

TEST(MetricRegistryTest, RefusesDuplicateAndBuiltInNames) {
  EXPECT_TRUE(absl::IsAlreadyExists(RegisterMetric("feature_sum", nullptr)));
  for (const char* name : {"", "accuracy", "top_3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RegisterMetric(name, nullptr))) << name;
  }
}

TEST(MetricRegistryTest, RefusesAFactoryThatMakesNothing) {
  ASSERT_TRUE(
      RegisterMetric("nothing", [](const config::v1::ModelConfig&, const ExampleSpec&) { return nullptr; }).ok());
  EXPECT_EQ(CreateMetric("registered:nothing", config::v1::ModelConfig(), ExampleSpec()).status(),
            absl::InvalidArgumentError("the registered metric \"nothing\" made nothing"));
}

}  // namespace
}  // namespace lockstep
