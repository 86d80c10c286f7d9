#include "lockstep/server/optimizer/optimizer_groups.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "mean" is not trained.
ParameterLayout Layout() {
  v1::ModelSpec model;
  for (const char* name : {"a/kernel", "a/bias", "mean", "b/kernel", "b/bias"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(2);
    variable->set_trainable(variable->name() != "mean");
  }
  return ParameterLayout::Create(model).value();
}

config::v1::OptimizerConfig Config(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::unique_ptr<OptimizerGroups> Make(const std::string& text) {
  return OptimizerGroups::Create(Config(text), Layout()).value();
}

std::string ErrorOf(const std::string& text) {
  const auto groups = OptimizerGroups::Create(Config(text), Layout());
  EXPECT_TRUE(absl::IsInvalidArgument(groups.status())) << text;
  return std::string(groups.status().message());
}

std::vector<std::vector<std::string>> StateNames(const OptimizerGroups& groups) {
  std::vector<std::vector<std::string>> names;
  for (const auto& states : groups.StatesOfVariables()) {
    names.emplace_back();
    for (const Optimizer::State& state : states) names.back().push_back(state.name);
  }
  return names;
}

std::vector<std::string> ScalarNames(const OptimizerGroups& groups) {
  std::vector<std::string> names;
  for (const OptimizerScalar& scalar : groups.scalars()) names.push_back(scalar.name);
  return names;
}

// Applies a gradient of 1 to a variable with one element of value 1 and states of 0, and returns its new value.
float Applied(const OptimizerGroups& groups, int variable) {
  const float gradient = 1;
  float value = 1, states[3] = {};
  std::vector<const float*> in;
  std::vector<float*> out;
  for (size_t k = 0; k < groups.RuleOf(variable).state().size(); ++k) {
    in.push_back(&states[k]);
    out.push_back(&states[k]);
  }
  groups.RuleOf(variable).Apply(1, &gradient, 1, &value, &value, in, out);
  return value;
}

TEST(OptimizerGroupsTest, VariablesHaveTheRuleOfTheirGroup) {
  const auto groups = Make(
      "adam {} learning_rate { initial: 0.5 } moving_average { decay: 0.9 } "
      "group { variables: 'bias$' moving_average: false } group { variables: '^b/kernel' optimizer { adagrad {} } }");
  EXPECT_EQ(groups->size(), 3u);
  EXPECT_THAT(
      StateNames(*groups),
      ElementsAre(ElementsAre("Adam", "Adam_1", "ExponentialMovingAverage"), ElementsAre("Adam", "Adam_1"), IsEmpty(),
                  ElementsAre("Adagrad", "ExponentialMovingAverage"), ElementsAre("Adam", "Adam_1")));
}

TEST(OptimizerGroupsTest, ExpressionsSelectTheAveraged) {
  const auto groups = Make(
      "momentum {} learning_rate { initial: 0.5 } moving_average { decay: 0.9 variables: 'a/' variables: '^b/bias$' } "
      "group { variables: 'a/bias' moving_average: false } "
      "group { variables: 'b/kernel' optimizer { adagrad {} moving_average { decay: 0.5 } } }");
  EXPECT_THAT(StateNames(*groups),
              ElementsAre(ElementsAre("Momentum", "ExponentialMovingAverage"), ElementsAre("Momentum"), IsEmpty(),
                          ElementsAre("Adagrad", "ExponentialMovingAverage"),
                          ElementsAre("Momentum", "ExponentialMovingAverage")));
  EXPECT_THAT(StateNames(*Make("sgd {} moving_average { decay: 0.9 variables: 'bias' } group { variables: '^a/' "
                               "rate_factor: 2 }")),
              ElementsAre(IsEmpty(), ElementsAre("ExponentialMovingAverage"), IsEmpty(), IsEmpty(),
                          ElementsAre("ExponentialMovingAverage")))
      << "a group without its own averages has those of the selection";
}

TEST(OptimizerGroupsTest, AverageOfNothingIsRefused) {
  EXPECT_EQ(ErrorOf("sgd {} moving_average { decay: 0.9 variables: 'bias' variables: 'mean' }"),
            "optimizer.moving_average: variables is \"mean\", which matches no trainable variable");
  EXPECT_THAT(ErrorOf("sgd {} moving_average { decay: 0.9 variables: '(' }"),
              HasSubstr("optimizer.moving_average.variables[0] is \"(\""));
}

TEST(OptimizerGroupsTest, RatesAreMultipliedByTheFactor) {
  const auto groups = Make(
      "sgd { weight_decay: 0.5 } learning_rate { piecewise { boundaries: 0 values: [0.5, 0.25] } } "
      "group { variables: 'bias$' rate_factor: 0.5 weight_decay: 0 } "
      "group { variables: '^b/kernel' optimizer { learning_rate { initial: 0.125 } } }");
  groups->BeginStep(0);
  EXPECT_EQ(groups->learning_rate(), 0.5f);
  EXPECT_EQ(groups->learning_rate(1), 0.25f);
  EXPECT_EQ(groups->learning_rate(2), 0.125f);
  EXPECT_EQ(Applied(*groups, 0), 1 - 0.5f * 1.5f);
  EXPECT_EQ(Applied(*groups, 1), 1 - 0.25f);
  EXPECT_EQ(Applied(*groups, 3), 1 - 0.125f * 1.5f);
  groups->EndStep();
  groups->BeginStep(1);
  EXPECT_EQ(groups->learning_rate(), 0.25f);
  EXPECT_EQ(groups->learning_rate(1), 0.125f);
  EXPECT_EQ(groups->learning_rate(2), 0.125f);
}

TEST(OptimizerGroupsTest, ScalarsHaveTensorFlowsNames) {
  EXPECT_THAT(ScalarNames(*Make("adam {} group { variables: 'bias$' weight_decay: 0 }")),
              ElementsAre("beta1_power", "beta2_power"))
      << "the group's rule advances as the whole's";
  EXPECT_THAT(
      ScalarNames(*Make("adam {} group { variables: 'bias$' optimizer { adam { beta1: 0.5 } } } "
                        "group { variables: '^b/kernel' optimizer { adam {} } }")),
      ElementsAre("beta1_power", "beta2_power", "beta1_power_1", "beta2_power_1", "beta1_power_2", "beta2_power_2"));
  EXPECT_THAT(ScalarNames(*Make("adam {} group { variables: '.' optimizer { adam { beta1: 0.5 } } }")),
              ElementsAre("beta1_power", "beta2_power"))
      << "no variable has the whole's rule";
}

TEST(OptimizerGroupsTest, RestoredScalarsGoToTheirRules) {
  const std::string config =
      "adam {} learning_rate { initial: 0.1 } group { variables: 'a/bias' weight_decay: 0.1 } "
      "group { variables: 'kernel' optimizer { adam { beta1: 0.5 } } }";
  const auto first = Make(config), second = Make(config);
  for (int64_t step = 0; step < 3; ++step) {
    first->BeginStep(step);
    first->EndStep();
  }
  second->RestoreScalars(first->scalars());
  EXPECT_EQ(second->scalars()[0].value, 0.9f * 0.9f * 0.9f * 0.9f);
  EXPECT_EQ(second->scalars()[2].value, 0.0625f);
  for (const auto& groups : {first.get(), second.get()}) groups->BeginStep(3);
  for (const int variable : {0, 1, 3, 4}) EXPECT_EQ(Applied(*first, variable), Applied(*second, variable)) << variable;
  second->EndStep();
  EXPECT_NE(Applied(*first, 1), Applied(*Make(config), 1)) << "a new rule has no rate yet";
}

TEST(OptimizerGroupsTest, MeansAreClippedByGroup) {
  const auto groups = Make(
      "sgd {} clip { mean_by_global_norm: 2 } group { variables: 'a/bias' rate_factor: 1 } "
      "group { variables: 'kernel' optimizer { clip { mean_by_global_norm: 5 } } }");
  EXPECT_TRUE(groups->ClipsMeans());
  EXPECT_EQ(groups->ClipGroupOf(groups->GroupOf(1)), 0u) << "clipped with the variables of no group";
  EXPECT_EQ(groups->ClipGroupOf(groups->GroupOf(0)), 2u);
  EXPECT_EQ(groups->MeanLimit(0), 2);
  EXPECT_EQ(groups->MeanLimit(2), 5);
  EXPECT_FALSE(Make("sgd {} clip { by_norm: 1 }")->ClipsMeans());
}

TEST(OptimizerGroupsTest, RefusesTwoGroupsOrNoneByName) {
  EXPECT_EQ(ErrorOf("sgd {} group { variables: 'bias$' rate_factor: 2 } group { variables: '^a' rate_factor: 3 }"),
            "variable a/bias matches optimizer.group[0] (\"bias$\") and optimizer.group[1] (\"^a\"); it must match one "
            "of them at most");
  EXPECT_EQ(ErrorOf("sgd {} group { variables: 'mean' rate_factor: 2 }"),
            "optimizer.group[0]: variables is \"mean\", which matches no trainable variable");
}

TEST(OptimizerGroupsTest, NamesTheFieldOfAGroup) {
  const std::pair<const char*, const char*> cases[] = {
      {"variables: 'a'", "optimizer.group[0] changes nothing; give it a rate_factor"},
      {"rate_factor: 2", "optimizer.group[0].variables is empty"},
      {"variables: '(' rate_factor: 2", "optimizer.group[0].variables is \"(\", not a regular expression"},
      {"variables: 'a' rate_factor: -1", "optimizer.group[0].rate_factor is -1"},
      {"variables: 'a' weight_decay: nan", "optimizer.group[0].weight_decay is nan"},
      {"variables: 'a' weight_decay: 1", "optimizer.group[0].weight_decay is set, but the optimizer's rule has no"},
      {"variables: 'a' weight_decay: 1 optimizer { sgd {} }", "set it in the rule"},
      {"variables: 'a' moving_average: true", "optimizer.group[0].moving_average is set, but optimizer.moving_average"},
      {"variables: 'a' moving_average: false optimizer { moving_average { decay: 0.9 } }",
       "optimizer.group[0].moving_average is set, and so is moving_average in the group's optimizer"},
      {"variables: 'a' optimizer { moving_average { decay: 0.9 variables: 'a' } }",
       "optimizer.group[0].optimizer.moving_average.variables is set in a group"},
      {"variables: 'a' optimizer { adam { beta1: 1 } }", "optimizer.group[0].optimizer.adam.beta1 is 1"},
      {"variables: 'a' optimizer { learning_rate {} }", "optimizer.group[0].optimizer.learning_rate.initial is 0"},
      {"variables: 'a' optimizer { clip { by_norm: 1 } }", "optimizer.group[0].optimizer.clip has by_value, by_norm"},
      {"variables: 'a' optimizer { multipliers {} }", "optimizer.group[0].optimizer.multipliers is set in a group"},
      {"variables: 'a' optimizer { group {} }", "optimizer.group[0].optimizer.group is set in a group"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ErrorOf(std::string("adagrad {} group { ") + text + " }"), HasSubstr(message)) << text;
  }
}

TEST(OptimizerGroupsTest, AChangeMustKeepTheState) {
  const std::string whole = "adam {} learning_rate { initial: 0.1 } group { variables: 'bias$' ";
  const auto change = [&](const std::string& before, const std::string& after) {
    return std::string(CheckSameState(Config(whole + before), Config(whole + after)).message());
  };
  EXPECT_EQ(change("rate_factor: 2 }", "rate_factor: 3 weight_decay: 0.5 }"), "");
  EXPECT_EQ(change("rate_factor: 2 } moving_average { decay: 0.9 variables: 'a' variables: 'b' }",
                   "rate_factor: 2 } moving_average { decay: 0.9 variables: 'a' }"),
            "optimizer.moving_average.variables would be \"a\", but the run has \"a\", \"b\", which cannot change");
  EXPECT_EQ(change("rate_factor: 2 } moving_average { decay: 0.9 variables: 'a' }",
                   "rate_factor: 2 } moving_average { decay: 0.8 variables: 'a' }"),
            "");
  EXPECT_EQ(change("rate_factor: 2 }", "rate_factor: 2 } group { variables: '^a/k' rate_factor: 2 }"),
            "optimizer.group: there would be 2 groups, but the run has 1, which cannot change");
  EXPECT_THAT(change("rate_factor: 2 }", "optimizer { adam {} } }"),
              HasSubstr("the run's group has no rule of its own"));
  EXPECT_THAT(change("optimizer { sgd {} } }", "optimizer { adam {} } }"),
              HasSubstr("optimizer.group[0]: optimizer: its kind differs"));
  EXPECT_EQ(std::string(CheckSameState(Config(whole + "rate_factor: 2 }"),
                                       Config("adam {} group { variables: 'b' rate_factor: 2 }"))
                            .message()),
            "optimizer.group[0].variables would be \"b\", but the run has \"bias$\", which cannot change");
  EXPECT_FALSE(CheckSameState(*Make("adam {} group { variables: 'bias$' optimizer { sgd {} } }"),
                              *Make("adam {} group { variables: '^a' optimizer { sgd {} } }"))
                   .ok());
  EXPECT_FALSE(CheckSameState(*Make("sgd {} moving_average { decay: 0.9 variables: '^a' }"),
                              *Make("sgd {} moving_average { decay: 0.9 variables: '^b' }"))
                   .ok());
}

}  // namespace
}  // namespace lockstep
