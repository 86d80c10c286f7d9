#include "lockstep/train/saver/variable_selection.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

const Names kLayers = {"conv1/weights", "conv1/biases", "fc/weights", "fc/biases"};

// WARM-21, WARM-22
TEST(FilterVariablesTest, IncludesThenExcludesInTheOrderOfTheVariables) {
  EXPECT_THAT(FilterVariables(kLayers, Names{"biases"}, absl::nullopt).value(),
              ElementsAre("conv1/biases", "fc/biases"));
  EXPECT_THAT(FilterVariables(kLayers, absl::nullopt, Names{"weights", "conv1"}).value(), ElementsAre("fc/biases"));
  EXPECT_THAT(FilterVariables(kLayers, Names{"fc", "biases"}, Names{"conv"}).value(),
              ElementsAre("fc/weights", "fc/biases"))
      << "each once";
}

// nullopt means all, and an empty list means none.
TEST(FilterVariablesTest, AnEmptyListIsNotAnAbsentOne) {
  EXPECT_EQ(FilterVariables(kLayers, absl::nullopt, absl::nullopt).value(), kLayers);
  EXPECT_THAT(FilterVariables(kLayers, Names{}, absl::nullopt).value(), IsEmpty());
  EXPECT_EQ(FilterVariables(kLayers, absl::nullopt, Names{}).value(), kLayers);
}

// WARM-24
TEST(FilterVariablesTest, WithoutSearchAnExpressionMatchesFromTheStart) {
  EXPECT_THAT(FilterVariables(kLayers, Names{"biases"}, absl::nullopt, false).value(), IsEmpty());
  EXPECT_THAT(FilterVariables(kLayers, Names{".*biases"}, absl::nullopt, false).value(),
              ElementsAre("conv1/biases", "fc/biases"));
}

TEST(FilterVariablesTest, ExpressionsSeeTensorFlowsNames) {
  EXPECT_THAT(FilterVariables(kLayers, Names{"fc/.*s:0$"}, absl::nullopt).value(),
              ElementsAre("fc/weights", "fc/biases"));
  EXPECT_THAT(FilterVariables(kLayers, Names{"biases$"}, absl::nullopt).value(), IsEmpty());
}

TEST(FilterVariablesTest, RefusesWhatIsNoExpression) {
  const absl::Status status = FilterVariables(kLayers, Names{"("}, absl::nullopt).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"(\" is not a regular expression"));
  EXPECT_FALSE(FilterVariables(kLayers, absl::nullopt, Names{"["}).ok());
}

TEST(GetVariablesTest, ModelVariablesAreThoseOfTheModel) {
  v1::ModelSpec model;
  for (const std::string& name : kLayers) model.add_variables()->set_name(name);
  EXPECT_EQ(GetModelVariables(model).value(), kLayers);
  EXPECT_THAT(GetModelVariables(model, "conv1").value(), ElementsAre("conv1/weights", "conv1/biases"));
  EXPECT_THAT(GetModelVariables(model, "fc", "biases").value(), ElementsAre("fc/biases"));
}

TEST(GetVariablesTest, AScopeMatchesTheStartAndNotAPartOfThePath) {
  const Names variables = {"conv1/w", "conv10/w", "fc/conv1"};
  EXPECT_THAT(GetVariables(variables, "conv1").value(), ElementsAre("conv1/w", "conv10/w"));
  EXPECT_EQ(GetVariables(variables).value(), variables);
  EXPECT_EQ(GetVariables(variables, "").value(), variables);
}

// WARM-25
TEST(GetVariablesTest, ASuffixIsTheEndOfTheName) {
  const Names variables = {"A/a", "A/fooa", "B/a"};
  EXPECT_EQ(GetVariablesBySuffix(variables, "a").value(), variables);
  EXPECT_THAT(GetVariablesBySuffix(variables, "/a").value(), ElementsAre("A/a", "B/a"));
  EXPECT_THAT(GetVariablesBySuffix(variables, "a", "A").value(), ElementsAre("A/a", "A/fooa"));
  EXPECT_THAT(GetVariables(variables, absl::nullopt, "/a:0").value(), ElementsAre("A/a", "B/a"));
  EXPECT_THAT(GetVariablesBySuffix(variables, "fo").value(), IsEmpty());
}

TEST(GetVariablesTest, ByNameTakesTheWholeLastPartOfThePath) {
  const Names variables = {"A/a", "A/fooa", "B/a", "a"};
  EXPECT_THAT(GetVariablesByName(variables, "a").value(), ElementsAre("A/a", "B/a", "a"));
  EXPECT_THAT(GetVariablesByName(variables, "/a").value(), IsEmpty());
  EXPECT_THAT(GetVariablesByName(variables, "fooa").value(), ElementsAre("A/fooa"));
  EXPECT_THAT(GetVariablesByName(variables, "a", "A").value(), ElementsAre("A/a", "a")) << "tf-slim's, too";
}

// WARM-27
TEST(GetUniqueVariableTest, NeedsTheWholeName) {
  EXPECT_EQ(GetUniqueVariable(Names{"parent", "parent/child"}, "parent").value(), "parent");
  const absl::Status child = GetUniqueVariable(Names{"parent/child"}, "parent").status();
  EXPECT_TRUE(absl::IsInvalidArgument(child));
  EXPECT_EQ(child.message(),
            "parent does not uniquely identify a variable: there is parent/child, and none of that name");
  EXPECT_EQ(GetUniqueVariable(Names{"a"}, "b").status().message(), "there is no variable b");
}

// WARM-15, WARM-17
TEST(GetVariablesToRestoreTest, IncludesScopes) {
  EXPECT_THAT(GetVariablesToRestore(Names{"A/a", "B/a"}, Names{"A"}).value(), ElementsAre("A/a"));
  EXPECT_THAT(GetVariablesToRestore(Names{"A/a", "B/a"}, Names{"a"}).value(), IsEmpty());
  EXPECT_THAT(GetVariablesToRestore(Names{"A/a", "B/c"}, Names{"B/c", "A/a"}).value(), ElementsAre("B/c", "A/a"));
  EXPECT_THAT(GetVariablesToRestore(Names{"A/a"}, Names{"A", "A/a"}).value(), ElementsAre("A/a", "A/a"));
}

// WARM-19
TEST(GetVariablesToRestoreTest, ExcludesScopes) {
  const Names variables = {"A/a", "A/b", "B/c", "B/d"};
  EXPECT_THAT(GetVariablesToRestore(variables, absl::nullopt, Names{"A/a", "B/c"}).value(), ElementsAre("A/b", "B/d"));
  EXPECT_THAT(GetVariablesToRestore(variables, Names{"A"}, Names{"A/b"}).value(), ElementsAre("A/a"));
}

// WARM-28: a model has no local variables.
TEST(GetVariablesToRestoreTest, AllOfAModelsVariablesAreToBeRestored) {
  v1::ModelSpec model;
  model.add_variables()->set_name("g");
  model.add_variables()->set_name("moving_mean");
  EXPECT_THAT(GetVariablesToRestore(VariableNames(model)).value(), ElementsAre("g", "moving_mean"));
}

}  // namespace
}  // namespace lockstep::train
