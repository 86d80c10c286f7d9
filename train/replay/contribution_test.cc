#include "lockstep/train/replay/contribution.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kElements = 1000;  // in the constant variable

v1::ModelSpec Spec() {
  v1::ModelSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        variables {
          name: "body"
          dtype: DT_FLOAT
          shape: 1000
          initializer { constant { value: 3 } }
        }
        variables { name: "w" dtype: DT_FLOAT shape: 2 trainable: true })pb",
      &spec));
  return spec;
}

// A model in which every element of the gradient of "w" is the last element of the constant variable.
class BodyModel : public Model {
 public:
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues values, const Batch&, const SlotKey&, GradientSink* sink) override {
    if (!sink->OnLoss(1)) return absl::CancelledError("the gradients are no longer wanted");
    std::fill_n(sink->GradientBuffer(1), 2, values[0][kElements - 1]);
    sink->OnGradient(1);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  const v1::ModelSpec spec_ = Spec();
};

TEST(ContributionComputerTest, ComputesWithConstantVariables) {
  config::v1::RunSpec config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input { batch_size: 1 } optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 10 }", &config));
  const auto store = VariableStore::Create(Spec(), config.optimizer()).value();
  store->Initialize(1);
  ContributionComputer computer(&store->layout(), [](const config::v1::RunSpec&) -> absl::StatusOr<Workload> {
    Workload workload;
    workload.model = std::make_unique<BodyModel>();
    return workload;
  });
  ASSERT_TRUE(computer.SetConfig(config).ok());
  v1::Token token;
  token.set_slot_count(1);
  const auto gradient = [&] {
    KeptContribution kept(&store->layout(), /*estimate=*/nullptr);
    const absl::Status computed = computer.Compute(token, store->published(), /*estimates=*/nullptr, &kept);
    EXPECT_TRUE(computed.ok()) << computed;
    return std::vector<float>(kept.gradient(1).begin(), kept.gradient(1).end());
  };
  EXPECT_THAT(gradient(), ElementsAre(3, 3));
  const std::vector<float> set(kElements, 5);
  ASSERT_TRUE(store->Assign({{"body", Tensor::FromValues<float>({kElements}, set)}}).ok());
  EXPECT_THAT(gradient(), ElementsAre(5, 5));
}

TEST(ContributionComputerTest, RefusesAModelWithOtherUpdateOps) {
  config::v1::RunSpec config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "input { batch_size: 1 } optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 10 }", &config));
  v1::ModelSpec recorded = Spec();
  recorded.add_update_ops()->set_variable("body");
  const ParameterLayout layout = ParameterLayout::Create(recorded).value();
  ContributionComputer computer(&layout, [](const config::v1::RunSpec&) -> absl::StatusOr<Workload> {
    Workload workload;
    workload.model = std::make_unique<BodyModel>();
    return workload;
  });
  ASSERT_TRUE(computer.SetConfig(config).ok()) << "the replay compares the first model";
  config.mutable_input()->set_batch_size(2);
  EXPECT_EQ(computer.SetConfig(config), absl::FailedPreconditionError("the model has other update ops than the run's"));
}

// An estimate covers only the trained variables.
TEST(KeptContributionTest, StartsAtTheEstimate) {
  const ParameterLayout layout = ParameterLayout::Create(Spec()).value();
  AlignedBuffer estimate(static_cast<size_t>(layout.trained_elements()) * sizeof(float));
  std::fill_n(estimate.as<float>(), layout.trained_elements(), 2.0f);
  const KeptContribution kept(&layout, &estimate);
  EXPECT_THAT(kept.gradient(1), ElementsAre(2, 2));
}

}  // namespace
}  // namespace lockstep
