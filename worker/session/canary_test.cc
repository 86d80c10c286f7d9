#include "lockstep/worker/session/canary.h"

#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/gradient_digest.h"
#include "lockstep/worker/session/testing/tiny_workload.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

// Returns a configuration with everything that involves state or random numbers: dropout and moving averages. One
// variable has two segments.
config::v1::RunSpec Config(const std::string& activation = "RELU") {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(R"(
    model {
      layer { name: "hidden" dense { units: 7000 } }
      layer { name: "norm" batch_norm { activation: )",
                                                                         activation, R"( } }
      layer { name: "drop" dropout { rate: 0.25 } }
      layer { name: "logits" dense { units: 4 } }
      loss { softmax_cross_entropy {} }
    }
    input {
      split { name: "train" synthetic { kind: CLASSIFICATION examples: 50 shape: 12 classes: 4 } }
      batch_size: 3
    }
    training { seed: 7 }
  )"),
                                                            &config));
  ApplyDefaults(&config);
  return config;
}

class CanaryTest : public ::testing::Test {
 protected:
  static Workload Load(const config::v1::RunSpec& config) {
    WorkloadOptions options;
    options.prefetch = false;
    return LoadWorkload(config, options).value();
  }
  absl::StatusOr<std::vector<uint64_t>> Compute(const config::v1::RunSpec& config, const Workload& workload) {
    v1::OpenSessionRequest request;
    *request.mutable_model() = workload.model->spec();
    return ComputeCanary(config, workload, client_.OpenSession(request).value(), stop_, &client_);
  }

  FakeChiefClient client_;
  std::atomic<bool> stop_{false};
};

TEST_F(CanaryTest, HasADigestForEachGradientAndUpdate) {
  const config::v1::RunSpec config = Config();
  const Workload workload = Load(config);
  const auto digests = Compute(config, workload);
  ASSERT_TRUE(digests.ok()) << digests.status();
  // Two kernels and biases, scale, offset, moving mean and moving variance.
  EXPECT_EQ(digests->size(), 8u);
  EXPECT_EQ(client_.calls().canary_values, 9) << "one for each segment";
  const auto again = Compute(config, workload);
  EXPECT_EQ(*digests, *again) << "nothing of the first stays in the model";
  EXPECT_EQ(*digests, *Compute(config, Load(config)));
}

TEST_F(CanaryTest, AnotherActivationSeedOrClipIsAnother) {
  const config::v1::RunSpec config = Config();
  const auto digests = Compute(config, Load(config)).value();
  config::v1::RunSpec other = Config("TANH");
  EXPECT_NE(Compute(other, Load(other)).value(), digests);
  other = config;
  other.mutable_training()->set_seed(8);
  EXPECT_NE(Compute(other, Load(other)).value(), digests);
  other = config;
  other.mutable_optimizer()->mutable_clip()->set_by_norm(1e-3f);
  EXPECT_NE(Compute(other, Load(other)).value(), digests);
}

TEST_F(CanaryTest, IsOfTheValuesThatTheChiefGives) {
  const config::v1::RunSpec config = Config();
  const auto digests = Compute(config, Load(config)).value();
  client_.canary_value = 0.5f;
  EXPECT_NE(Compute(config, Load(config)).value(), digests);
}

TEST_F(CanaryTest, IsTheDigestOfTheGradients) {
  // TinyModel's gradient is 1, whatever the values are.
  const Workload workload = TinyWorkload();
  const auto digests = Compute(config::v1::RunSpec(), workload);
  ASSERT_TRUE(digests.ok()) << digests.status();
  EXPECT_EQ(*digests, std::vector<uint64_t>{GradientDigest({1.0f})});
}

// Reports an update of an integer variable.
class CountingModel : public Model {
 public:
  explicit CountingModel(Elements update) : update_(update) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "w" dtype: DT_FLOAT trainable: true }
      variables { name: "seen" dtype: DT_INT64 shape: 2 }
      update_ops { variable: "seen" kind: ASSIGN_ADD })",
                                                              &spec_));
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink* sink) override {
    sink->OnLoss(1);
    sink->OnUpdate(0, update_);
    *sink->GradientBuffer(0) = 1;
    sink->OnGradient(0);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  v1::ModelSpec spec_;
  const Elements update_;
};

TEST_F(CanaryTest, AnUpdateHasItsVariablesType) {
  const int64_t right[] = {1, 2}, other[] = {1, 3};
  const float wrong[] = {1, 2, 3, 4};
  const auto compute = [this](Elements update) {
    Workload workload = TinyWorkload();
    workload.model = std::make_unique<CountingModel>(update);
    return Compute(config::v1::RunSpec(), workload);
  };
  const auto digests = compute(right);
  ASSERT_TRUE(digests.ok()) << digests.status();
  EXPECT_EQ(digests->size(), 2u);
  EXPECT_NE((*digests)[1], compute(other).value()[1]);
  EXPECT_EQ(compute(wrong).status(),
            absl::InvalidArgumentError("the update of seen is float32, the variable is int64"));
}

TEST_F(CanaryTest, AStopEndsIt) {
  const Workload workload = TinyWorkload([this] { stop_ = true; });
  EXPECT_TRUE(absl::IsCancelled(Compute(config::v1::RunSpec(), workload).status()));
}

// Joining succeeds, so that the first block can detect the end of the input and end the run successfully.
TEST_F(CanaryTest, AnEmptyInputHasDigestsOfNothing) {
  const Workload workload = TinyWorkload(nullptr, nullptr, /*input_end=*/0);
  const auto digests = Compute(config::v1::RunSpec(), workload);
  ASSERT_TRUE(digests.ok()) << digests.status();
  EXPECT_EQ(*digests, std::vector<uint64_t>{0});
}

TEST_F(CanaryTest, AnInputThatFailsIsItsError) {
  class FailingBatches : public EmptyBatches {
   public:
    FailingBatches() : EmptyBatches(0) {}
    absl::StatusOr<Batch> Get(int64_t, int64_t) override { return absl::DataLossError("the file is damaged"); }
  };
  Workload workload = TinyWorkload();
  workload.batches = std::make_unique<FailingBatches>();
  EXPECT_EQ(Compute(config::v1::RunSpec(), workload).status(), absl::DataLossError("the file is damaged"));
}

}  // namespace
}  // namespace lockstep
