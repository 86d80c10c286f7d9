#include "lockstep/common/config/validation/variable_expression.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::ModelSpec Model() {
  v1::ModelSpec model;
  for (const char* name : {"a/kernel", "a/mean", "b/kernel", "b/bias"}) {
    v1::VariableSpec* const variable = model.add_variables();
    variable->set_name(name);
    variable->set_trainable(variable->name() != "a/mean");
  }
  return model;
}

TEST(VariableExpressionTest, FindsTrainablesByAnyPartOfTheirName) {
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
  expect("(", "variables is \"(\", not a regular expression: missing ): (");
  expect("mean", "variables is \"mean\", which matches no trainable variable");
}

TEST(VariableExpressionTest, ChecksWithoutAModel) {
  EXPECT_TRUE(CheckVariableExpression(std::string(1000, 'a')).ok());
  EXPECT_TRUE(CheckVariableExpression(std::string(10000, 'a')).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckVariableExpression("[")));
}

TEST(VariableExpressionTest, SaysWhatIsWrongWithAnExpression) {
  const auto error = [](const std::string& expression) {
    return std::string(CheckVariableExpression(expression).message());
  };
  EXPECT_EQ(error("a[b"), "is \"a[b\", not a regular expression: missing ]: [b");
  EXPECT_EQ(error("*a"), "is \"*a\", not a regular expression: no argument for repetition operator: *");
  EXPECT_EQ(error("(a)\\1"), "is \"(a)\\1\", not a regular expression: invalid escape sequence: \\1");
  EXPECT_EQ(error("a(?!b)"), "is \"a(?!b)\", not a regular expression: invalid perl operator: (?!");
}

TEST(VariableExpressionTest, ExplosiveExpressionTakesLinearTime) {
  v1::ModelSpec model;
  model.add_variables()->set_name(std::string(10000, 'a'));
  model.mutable_variables(0)->set_trainable(true);
  EXPECT_THAT(FindTrainableVariables("(a*)*$", model).value(), ElementsAre(0));
  EXPECT_FALSE(FindTrainableVariables("(a|a|a?)+b", model).ok());
}

TEST(VariableExpressionTest, TakesOrRefusesExpressionsOfAnySize) {
  EXPECT_THAT(std::string(CheckVariableExpression("((a{100}){100}){100}").message()),
              HasSubstr("is \"((a{100}){100}){100}\", not a regular expression: "));
  std::string deep(100000, '(');
  EXPECT_FALSE(CheckVariableExpression(deep).ok());
}

}  // namespace
}  // namespace lockstep
