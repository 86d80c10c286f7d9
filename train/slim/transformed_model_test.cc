#include "lockstep/train/slim/transformed_model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep::train::slim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model with variables "a" [2], "mean" [1], "b" [1], "lost" [1] and "count" [1], and two update ops. The loss does
// not depend on "lost".
class FakeModel : public Model {
 public:
  FakeModel() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "variables { name: 'a' shape: 2 trainable: true } variables { name: 'mean' shape: 1 } "
        "variables { name: 'b' shape: 1 trainable: true } variables { name: 'lost' shape: 1 trainable: true } "
        "variables { name: 'count' shape: 1 } update_ops { variable: 'count' } update_ops { variable: 'mean' }",
        &spec_));
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  std::vector<Part> Fingerprint() const override { return {{"fake", "1"}}; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey& key, GradientSink* sink) override {
    if (!sink->OnLoss(1)) return absl::CancelledError("not wanted");
    const float count = 5, mean = 6;
    sink->OnUpdate(0, {&count, 1});
    sink->OnUpdate(1, {&mean, 1});
    *sink->GradientBuffer(2) = 10;
    sink->OnGradient(2);
    sink->GradientBuffer(0)[0] = 3;
    sink->GradientBuffer(0)[1] = 4;
    sink->OnGradient(0);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError(""); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return 2.0f; }

 private:
  v1::ModelSpec spec_;
};

class FakeSink : public GradientSink {
 public:
  bool OnLoss(float) override { return wanted; }
  void OnUpdate(int index, Elements value) override {
    calls.push_back(absl::StrCat("update ", index, ": ", *value.as<float>()));
  }
  float* GradientBuffer(int variable) override { return gradients[variable].data(); }
  void OnGradient(int variable) override {
    calls.push_back(absl::StrCat("gradient ", variable, ": ", gradients[variable][0]));
  }

  bool wanted = true;
  std::vector<std::string> calls;
  std::vector<std::vector<float>> gradients = std::vector<std::vector<float>>(5, {-1, -1});
};

class TransformedModelTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Model>> Create() {
    return TransformedModel::Create(std::make_unique<FakeModel>(), options_);
  }
  std::vector<std::string> Compute(int64_t step = 0, int64_t slot = 0) {
    SlotKey key;
    key.step = step;
    key.slot = slot;
    FakeSink sink;
    EXPECT_TRUE((*Create())->ComputeGradients({}, Batch(), key, &sink).ok());
    return sink.calls;
  }
  std::string ErrorOf() {
    const auto model = Create();
    EXPECT_TRUE(absl::IsInvalidArgument(model.status())) << model.status();
    return std::string(model.status().message());
  }

  TransformedModel::Options options_;
};

TEST_F(TransformedModelTest, AGradientThatIsMissingIsOneOfZeros) {
  EXPECT_THAT(Compute(), ElementsAre("update 0: 5", "update 1: 6", "gradient 2: 10", "gradient 0: 3", "gradient 3: 0"));
}

TEST_F(TransformedModelTest, TransformsSeeAllGradientsAtOnce) {
  options_.transforms.push_back([](std::vector<GradientAndVariable>& pairs, int64_t step) {
    EXPECT_EQ(step, 7);
    EXPECT_EQ(pairs.size(), 3u);
    EXPECT_EQ(pairs[0].variable->name(), "a");
    EXPECT_THAT(pairs[0].gradient, ElementsAre(3, 4));
    EXPECT_FALSE(pairs[2].has_gradient());
    pairs[0].gradient[0] = pairs[1].gradient[0];
    return absl::OkStatus();
  });
  options_.transforms.push_back(ClipGradientNormsFn(5));
  EXPECT_THAT(Compute(7),
              ElementsAre("update 0: 5", "update 1: 6", "gradient 2: 5", "gradient 0: 4.64238", "gradient 3: 0"));
}

TEST_F(TransformedModelTest, AnErrorOfATransformIsOneOfTheStep) {
  options_.transforms.push_back([](auto&, int64_t) { return absl::InvalidArgumentError("wrong"); });
  FakeSink sink;
  EXPECT_EQ((*Create())->ComputeGradients({}, Batch(), SlotKey(), &sink), absl::InvalidArgumentError("wrong"));
  EXPECT_THAT(sink.calls, ElementsAre("update 0: 5", "update 1: 6"));
}

TEST_F(TransformedModelTest, WhatIsNotWantedIsNotTransformed) {
  options_.transforms.push_back([](auto&, int64_t) { return absl::InternalError("called"); });
  FakeSink sink;
  sink.wanted = false;
  EXPECT_TRUE(absl::IsCancelled((*Create())->ComputeGradients({}, Batch(), SlotKey(), &sink)));
  EXPECT_THAT(sink.calls, IsEmpty());
}

TEST_F(TransformedModelTest, OtherVariablesAreNotTrained) {
  options_.variables_to_train = {{"b"}};
  EXPECT_THAT(Compute(), ElementsAre("update 0: 5", "update 1: 6", "gradient 2: 10"));
  const auto model = *Create();
  EXPECT_FALSE(model->spec().variables(0).trainable());
  EXPECT_TRUE(model->spec().variables(2).trainable());
  options_.variables_to_train = {{"b", "mean"}};
  EXPECT_THAT(ErrorOf(), HasSubstr("variables_to_train: mean: no trainable variable of the model"));
}

// CTO-07
TEST_F(TransformedModelTest, OtherUpdateOpsDoNotRun) {
  class Warnings : public google::LogSink {
   public:
    Warnings() { google::AddLogSink(this); }
    ~Warnings() override { google::RemoveLogSink(this); }
    void send(google::LogSeverity severity, const char*, const char*, int, const struct ::tm*, const char* message,
              size_t length) override {
      if (severity == google::GLOG_WARNING) text.append(message, length);
    }
    std::string text;
  } warnings;
  options_.update_ops = {{"mean", "count"}};
  EXPECT_EQ(Compute()[0], "update 0: 5");
  EXPECT_EQ(warnings.text, "");
  options_.update_ops = {{"mean"}};
  ASSERT_TRUE(Create().ok());
  EXPECT_THAT(warnings.text, HasSubstr("does not contain all the update_ops of the model: count"));
  EXPECT_EQ(Compute()[0], "update 0: 6");
  EXPECT_EQ((*Create())->spec().update_ops_size(), 1);
  options_.update_ops = std::vector<std::string>();
  EXPECT_EQ(Compute()[0], "gradient 2: 10");
  options_.update_ops = {{"a"}};
  EXPECT_THAT(ErrorOf(), HasSubstr("update_ops: a: no update op of the model changes it"));
}

TEST_F(TransformedModelTest, ItsFingerprintSaysWhatItDoes) {
  EXPECT_EQ((*Create())->Fingerprint().size(), 1u);
  options_.description = "clip 5";
  const auto parts = (*Create())->Fingerprint();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "fake");
  EXPECT_EQ(parts[1].content, "clip 5");
  EXPECT_EQ(*(*Create())->EvaluateLoss({}, Batch()), 2);
}

}  // namespace
}  // namespace lockstep::train::slim
