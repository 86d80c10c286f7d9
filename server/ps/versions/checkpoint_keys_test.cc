#include "lockstep/server/ps/versions/checkpoint_keys.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::OptimizerConfig Config(const std::string& rule) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(rule + " learning_rate { initial: 0.1 }", &config));
  return config;
}

// Checks a model with the trained variables "w" and "a/b" and the untrained ones "mean" and `name`.
absl::Status Check(const std::string& name, const std::string& rule, int64_t estimates = 0) {
  v1::ModelSpec model;
  for (const char* trained : {"w", "a/b"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(trained);
    variable->set_trainable(true);
  }
  model.add_variables()->set_name("mean");
  model.add_variables()->set_name(name);
  for (v1::VariableSpec& variable : *model.mutable_variables()) variable.set_dtype(v1::DT_FLOAT);
  const ParameterLayout layout = ParameterLayout::Create(model).value();
  return CheckCheckpointKeys(layout, *OptimizerGroups::Create(Config(rule), layout).value(), estimates);
}

TEST(CheckpointKeysTest, RefusesNamesThatEveryOptimizerUses) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> rules = {
      {"sgd {}", {}},
      {"momentum {}", {"Momentum"}},
      {"adam {}", {"Adam", "Adam_1"}},
      {"adagrad {}", {"Adagrad"}},
      {"rmsprop {}", {"RMSProp", "RMSProp_1"}},
      {"rmsprop { centered: true }", {"RMSProp", "RMSProp_1", "RMSProp_2"}},
      {"adadelta {}", {"Adadelta", "Adadelta_1"}},
      {"ftrl {}", {"Ftrl", "Ftrl_1"}},
  };
  for (const auto& [rule, states] : rules) {
    ASSERT_EQ(Optimizer::Create(Config(rule)).value()->state().size(), states.size()) << rule;
    EXPECT_EQ(
        Check("global_step", rule).message(),
        "variable global_step has the name under which a checkpoint keeps the number of updates; give it another");
    for (const std::string& state : states) {
      const absl::Status status = Check("a/b/" + state, rule);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << rule << " " << state;
      EXPECT_THAT(std::string(status.message()), HasSubstr("variable a/b/" + state));
      EXPECT_THAT(std::string(status.message()), HasSubstr("state " + state + " of variable a/b;"));
      EXPECT_FALSE(Check("w/" + state, rule).ok());
      EXPECT_TRUE(Check("mean/" + state, rule).ok()) << "it has no optimizer state";
      EXPECT_TRUE(Check(state, rule).ok());
      EXPECT_TRUE(Check("w/" + state + "_", rule).ok());
    }
  }
  for (const char* power : {"beta1_power", "beta2_power"}) {
    EXPECT_THAT(std::string(Check(power, "adam {}").message()), HasSubstr(power));
    EXPECT_TRUE(Check(power, "sgd {}").ok()) << "the key is not used for anything else";
  }
}

TEST(CheckpointKeysTest, RefusesTheNamesOfEstimates) {
  EXPECT_EQ(Check("w/GradientEstimate_2", "sgd {}", 3).message(),
            "variable w/GradientEstimate_2 has the name under which a checkpoint keeps an estimate of the gradient of "
            "variable w; give it another");
  for (const char* name : {"w/GradientEstimate_3", "w/GradientEstimate_02", "w/GradientEstimate_-1",
                           "w/GradientEstimate_", "mean/GradientEstimate_2"}) {
    EXPECT_TRUE(Check(name, "sgd {}", 3).ok()) << name;
  }
  EXPECT_TRUE(Check("w/GradientEstimate_2", "sgd {}", 0).ok());
}

TEST(CheckpointKeysTest, RefusesNamesThatNoIndexHolds) {
  EXPECT_TRUE(Check(std::string(60000, 'x'), "sgd {}").ok());
  EXPECT_THAT(std::string(Check(std::string(70000, 'x'), "sgd {}").message()), HasSubstr("a name of 70000 bytes"));
  EXPECT_THAT(std::string(Check(std::string("\0x", 2), "sgd {}").message()), HasSubstr("variable \\x00x"));
}

}  // namespace
}  // namespace lockstep
