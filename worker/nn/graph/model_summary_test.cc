#include "lockstep/worker/nn/graph/model_summary.h"

#include <memory>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/model_registry.h"

namespace lockstep {
namespace {

// A model with variables of several types. The first one leaves its type out.
class TypedModel : public Model {
 public:
  TypedModel() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "w" shape: 3 trainable: true }
      variables { name: "seen" dtype: DT_INT64 shape: 2 }
      variables { name: "flags" dtype: DT_BOOL shape: 5 }
    )",
                                                              &spec_));
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink*) override {
    return absl::UnimplementedError("no");
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  v1::ModelSpec spec_;
};

REGISTER_MODEL("typed",
               [](const config::v1::ModelConfig&, const ExampleSpec&, const ModelOptions&)
                   -> absl::StatusOr<std::unique_ptr<Model>> { return std::make_unique<TypedModel>(); });

TEST(ModelSummaryTest, ShowsLayersShapesAndNumbers) {
  config::v1::ModelConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "layer { name: 'conv' conv2d { filters: 32 kernel: 3 no_bias: true } } layer { name: 'norm' batch_norm {} }"
      "layer { name: 'pool' max_pool { window: 2 } } layer { name: 'flat' flatten {} }"
      "layer { name: 'logits' dense { units: 10 } } loss { softmax_cross_entropy {} }",
      &config));
  ExampleSpec examples;
  examples.features_shape = Shape{28, 28, 1};
  examples.classes = 10;
  const absl::StatusOr<ModelSummary> summary = SummarizeModel(config, examples);
  ASSERT_EQ(summary.status(), absl::OkStatus());
  EXPECT_EQ(summary->ToTable(),
            "layer   kind        output      parameters    bytes  multiply-adds\n"
            "conv    conv2d      [28,28,32]         288    1,152        225,792\n"
            "norm    batch_norm  [28,28,32]         128      512              0\n"
            "pool    max_pool    [14,14,32]           0        0              0\n"
            "flat    flatten     [6272]               0        0              0\n"
            "logits  dense       [10]            62,730  250,920         62,720\n"
            "total                               63,146  252,584        288,512\n"
            "63,082 of 63,146 parameters are trained\n");
}

TEST(ModelSummaryTest, BytesDependOnTheTypeOfAVariable) {
  config::v1::ModelConfig config;
  config.set_registered("typed");
  const absl::StatusOr<ModelSummary> summary = SummarizeModel(config, ExampleSpec());
  ASSERT_EQ(summary.status(), absl::OkStatus());
  EXPECT_EQ(summary->ToTable(),
            "layer  kind      output  parameters  bytes  multiply-adds\n"
            "w      variable  [3]              3     12              0\n"
            "seen   variable  [2]              2     16              0\n"
            "flags  variable  [5]              5      5              0\n"
            "total                            10     33              0\n"
            "3 of 10 parameters are trained\n");
}

TEST(ModelSummaryTest, ReturnsTheErrorsOfTheModel) {
  EXPECT_EQ(SummarizeModel(config::v1::ModelConfig(), ExampleSpec()).status(),
            absl::InvalidArgumentError("the model has no layers"));
  config::v1::ModelConfig config;
  config.set_registered("unknown");
  EXPECT_TRUE(absl::IsNotFound(SummarizeModel(config, ExampleSpec()).status()));
}

}  // namespace
}  // namespace lockstep
