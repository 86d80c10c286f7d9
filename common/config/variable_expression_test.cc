#include "common/config/variable_expression.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec Model() {
  ModelSpec model;
  for (const char* name : {"a/kernel", "a/mean", "b/kernel", "b/bias"}) {
    VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_trainable(variable->name() != "a/mean");
  }
  return model;
}

TEST(VariableExpressionTest, FindsTrainableVariablesByAnyPartOfTheirName) {
  EXPECT_THAT(FindTrainableVariables("kernel", Model()).value(), ElementsAre(0, 2));
  EXPECT_THAT(FindTrainableVariables("^a/", Model()).value(), ElementsAre(0));
  EXPECT_THAT(FindTrainableVariables(".*", Model()).value(), ElementsAre(0, 2, 3));
}

TEST(VariableExpressionTest, RefusesWhatNamesNoVariable) {
  const auto expect = [](const std::string& expression, const std::string& text) {
    const absl::Status status = FindTrainableVariables(expression, Model()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  expect("(", "variables is \"(\", not a regular expression");
  expect(std::string(1001, 'a'), "variables has 1001 characters, must have at most 1000");
  expect("mean", "variables is \"mean\", which matches no trainable variable");
}

TEST(VariableExpressionTest, ChecksWithoutAModel) {
  EXPECT_TRUE(CheckVariableExpression(std::string(1000, 'a')).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckVariableExpression("[")));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckVariableExpression(std::string(1001, 'a'))));
}

}  // namespace
}  // namespace lockstep
