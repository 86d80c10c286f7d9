#include "lockstep/worker/evaluation/checkpoint_evaluation.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// outputs = features * scale[0]
class Scale : public Model {
 public:
  Scale() {
    v1::VariableSpec* variable = spec_.add_variables();
    variable->set_name("scale");
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(1);
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink*) override {
    return absl::UnimplementedError("not trained");
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    Tensor outputs(v1::DT_FLOAT, batch.features.shape());
    for (int64_t i = 0; i < outputs.num_elements(); ++i) {
      outputs.flat<float>()[i] = values[0][0] * batch.features.flat<float>()[i];
    }
    return outputs;
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch&) override { return values[0][0]; }

 private:
  v1::ModelSpec spec_;
};

// Example i has the features 0.1 * i and -0.5, and the label i % 2.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size) : Dataset(Spec(), size, /*has_weights=*/false, /*crc32c=*/0) {}

 private:
  static ExampleSpec Spec() {
    ExampleSpec spec;
    spec.features_shape = Shape({2});
    spec.classes = 2;
    return spec;
  }
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out->features.flat<float>()[2 * i] = 0.1f * static_cast<float>(indices[i]);
      out->features.flat<float>()[2 * i + 1] = -0.5f;
      out->labels.flat<int32_t>()[i] = static_cast<int32_t>(indices[i] % 2);
    }
    return absl::OkStatus();
  }
};

class CheckpointEvaluationTest : public ::testing::Test {
 protected:
  CheckpointEvaluationTest() {
    auto writer = *BundleWriter::Create(&fs_, "model.ckpt-12");
    const Tensor step = Tensor::FromValues<int64_t>({}, {12});
    const Tensor scale = Tensor::FromValues<float>({1}, {3.0f});
    EXPECT_TRUE(writer->Add("global_step", v1::DT_INT64, step.shape(), step.bytes()).ok());
    EXPECT_TRUE(writer->Add("scale", v1::DT_FLOAT, scale.shape(), scale.bytes()).ok());
    EXPECT_TRUE(writer->Finish().ok());
    options_.batch_size = 2;
  }

  absl::StatusOr<CheckpointEvaluation> Evaluate(const std::string& prefix) {
    const Numbers dataset(5);
    return EvaluateCheckpoint(&fs_, prefix, &model_, dataset,
                              *CreateMetrics({}, config::v1::ModelConfig(), dataset.spec()), options_);
  }

  MemoryFileSystem fs_;
  Scale model_;
  EvaluationOptions options_;
};

TEST_F(CheckpointEvaluationTest, EvaluatesTheValuesOfTheCheckpoint) {
  auto evaluation = Evaluate("model.ckpt-12");
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->step, 12);
  EXPECT_EQ(evaluation->result.ToString(), "5 examples: accuracy 0.6, mean_loss 3");
}

// EVAL-11.
TEST_F(CheckpointEvaluationTest, AMissingCheckpointIsAnError) {
  const absl::Status status = Evaluate("model.ckpt-13").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.ckpt-13"));
}

}  // namespace
}  // namespace lockstep
