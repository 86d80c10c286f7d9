#include "lockstep/worker/nn/model_registry.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A model with one variable w whose loss is w^2 / 2. It ignores the batch.
class SquareModel : public Model {
 public:
  explicit SquareModel(std::string variable) {
    v1::VariableSpec* spec = spec_.add_variables();
    spec->set_name(std::move(variable));
    spec->set_dtype(v1::DT_FLOAT);
    spec->set_trainable(true);
  }

  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues values, const Batch&, const SlotKey&, GradientSink* sink) override {
    if (!sink->OnLoss(*values[0] * *values[0] / 2)) return absl::CancelledError();
    *sink->GradientBuffer(0) = *values[0];
    sink->OnGradient(0);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return Tensor(v1::DT_FLOAT, Shape{0, 1}); }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch&) override {
    return *values[0] * *values[0] / 2;
  }

 private:
  v1::ModelSpec spec_;
};

REGISTER_MODEL("square",
               [](const config::v1::ModelConfig& config, const ExampleSpec&,
                  const ModelOptions&) -> absl::StatusOr<std::unique_ptr<Model>> {
                 const auto name = config.parameter().find("variable");
                 if (name == config.parameter().end())
                   return absl::InvalidArgumentError("parameter 'variable' is missing");
                 return std::make_unique<SquareModel>(name->second);
               });

TEST(ModelRegistryTest, CreatesARegisteredModel) {
  config::v1::ModelConfig config;
  config.set_registered("square");
  (*config.mutable_parameter())["variable"] = "w";
  const absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(config, ExampleSpec());
  ASSERT_EQ(model.status(), absl::OkStatus());
  EXPECT_EQ((*model)->spec().variables(0).name(), "w");
}

TEST(ModelRegistryTest, ReturnsTheErrorOfTheFactory) {
  config::v1::ModelConfig config;
  config.set_registered("square");
  EXPECT_EQ(CreateModel(config, ExampleSpec()).status(), absl::InvalidArgumentError("parameter 'variable' is missing"));
}

TEST(ModelRegistryTest, UnknownModelListsTheRegistered) {
  EXPECT_THAT(RegisteredModels(), Contains("square"));
  const absl::Status status = FindModel("cube").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"cube\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("square"));
}

TEST(ModelRegistryTest, RefusesANameTwice) { EXPECT_TRUE(absl::IsAlreadyExists(RegisterModel("square", nullptr))); }

TEST(ModelRegistryTest, RefusesARegisteredModelWithLayers) {
  config::v1::ModelConfig config;
  config.set_registered("square");
  config.add_layer();
  const absl::Status status = CreateModel(config, ExampleSpec()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1 layers"));
}

}  // namespace
}  // namespace lockstep
