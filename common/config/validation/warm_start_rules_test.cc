#include "lockstep/common/config/validation/warm_start_rules.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<WarmStartRules> Create(const std::string& text) {
  config::v1::WarmStartVariables config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return WarmStartRules::Create(config);
}

std::vector<std::string> Selected(const std::string& text, const std::vector<std::string>& names) {
  const WarmStartRules rules = Create(text).value();
  std::vector<std::string> selected;
  for (const std::string& name : names) {
    if (rules.Selects(name)) selected.push_back(name);
  }
  return selected;
}

TEST(WarmStartRulesTest, WithoutRulesLoadsAllByTheirOwnNames) {
  const WarmStartRules rules = Create("").value();
  EXPECT_TRUE(rules.Selects("a/b"));
  EXPECT_EQ(rules.SourceOf("a/b").key, "a/b");
  EXPECT_FALSE(rules.require_all());
  EXPECT_FALSE(rules.reshape());
}

// WARM-15, WARM-17
TEST(WarmStartRulesTest, IncludeMatchesAtTheStartOfTheName) {
  EXPECT_THAT(Selected("include: 'A'", {"A/a", "B/a"}), ElementsAre("A/a"));
  EXPECT_THAT(Selected("include: 'a'", {"A/a", "B/a"}), IsEmpty());
  EXPECT_THAT(Selected("include: 'A/a' include: 'B/c'", {"A/a", "B/c", "B/d"}), ElementsAre("A/a", "B/c"));
  EXPECT_THAT(Selected("include: 'conv1'", {"conv1/w", "conv10/w"}), ElementsAre("conv1/w", "conv10/w"));
}

// WARM-19
TEST(WarmStartRulesTest, ExcludeTakesFromWhatIsIncluded) {
  const std::vector<std::string> names = {"A/a", "A/b", "B/c", "B/d"};
  EXPECT_THAT(Selected("exclude: 'A/a' exclude: 'B/c'", names), ElementsAre("A/b", "B/d"));
  EXPECT_THAT(Selected("include: 'A' exclude: '.*/b'", names), ElementsAre("A/a"));
  EXPECT_THAT(Selected("exclude: 'b'", names), ElementsAre("A/a", "A/b", "B/c", "B/d"));
}

TEST(WarmStartRulesTest, TheFirstMatchingRenameCounts) {
  const WarmStartRules rules = Create(R"pb(
                                 rename { variable: "fc(\\d)/kernel" key: "net/fc\\1/weights" }
                                 rename { variable: "(.*)/kernel" key: "\\1/weights" }
                                 rename { variable: "(.*)/(beta|gamma)" key: "\\1/BatchNorm/\\2" }
                                 rename { variable: "a|ab" key: "<\\0>" })pb")
                                   .value();
  EXPECT_EQ(rules.SourceOf("fc1/kernel").key, "net/fc1/weights");
  EXPECT_EQ(rules.SourceOf("conv1/kernel").key, "conv1/weights");
  EXPECT_EQ(rules.SourceOf("my/fc1/kernel").key, "my/fc1/weights");
  EXPECT_EQ(rules.SourceOf("bn/gamma").key, "bn/BatchNorm/gamma");
  EXPECT_EQ(rules.SourceOf("conv1/kernel2").key, "conv1/kernel2");
  EXPECT_EQ(rules.SourceOf("ab").key, "<ab>");
}

TEST(WarmStartRulesTest, ARenameStatesTheOrderOfDimensions) {
  const WarmStartRules rules = Create(R"pb(
                                 rename { variable: "(fc)/kernel" key: "\\1.weight" transpose: true }
                                 rename { variable: "as_is/kernel" key: "as_is.weight" transpose: false }
                                 rename {
                                   variable: "conv/kernel"
                                   key: "conv.weight"
                                   permutation: [ 2, 3, 1, 0 ]
                                 })pb")
                                   .value();
  EXPECT_EQ(rules.SourceOf("fc/kernel").key, "fc.weight");
  EXPECT_THAT(rules.SourceOf("fc/kernel").permutation, ElementsAre(1, 0));
  EXPECT_THAT(rules.SourceOf("as_is/kernel").permutation, IsEmpty());
  EXPECT_TRUE(rules.SourceOf("as_is/kernel").has_order);
  EXPECT_THAT(rules.SourceOf("conv/kernel").permutation, ElementsAre(2, 3, 1, 0));
  EXPECT_FALSE(rules.SourceOf("other").has_order);
}

TEST(WarmStartRulesTest, ErrorsNameTheField) {
  const auto error = [](const std::string& text) { return std::string(Create(text).status().message()); };
  EXPECT_THAT(error("include: 'a' include: '('"), HasSubstr("include[1] is \"(\", not a regular expression"));
  EXPECT_EQ(error("exclude: ''"), "exclude[0] is empty");
  EXPECT_THAT(error("rename { variable: '[' key: 'a' }"), HasSubstr("rename[0].variable is \"[\""));
  EXPECT_THAT(error("rename { variable: '\\\\Qa' key: 'b' }"), HasSubstr("rename[0].variable is "));
  EXPECT_EQ(error("rename { variable: 'a' }"), "rename[0].key is empty");
  EXPECT_THAT(error("rename { variable: '(a)' key: 'b' } rename { variable: '(a)' key: '\\\\2' }"),
              HasSubstr("rename[1].key is \"\\2\": "));
  EXPECT_EQ(error("rename { variable: 'a' key: 'b' permutation: [0, 2] }"),
            "rename[0].permutation is [0, 2], must have each number from 0 to 1 once");
  EXPECT_EQ(error("rename { variable: 'a' key: 'b' permutation: 0 transpose: true }"),
            "rename[0] has both transpose and permutation");
}

}  // namespace
}  // namespace lockstep
