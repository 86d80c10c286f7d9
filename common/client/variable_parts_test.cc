#include "lockstep/common/client/variable_parts.h"

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

v1::ReadVariablesReply Reply(const std::string& text) {
  v1::ReadVariablesReply reply;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &reply));
  return reply;
}

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(VariablePartsTest, PutsPartsTogether) {
  VariableParts parts(/*names_only=*/false);
  v1::ReadVariablesReply reply = Reply(R"(
    step: 7
    part { name: "s" dtype: DT_FLOAT }
    part { name: "w" dtype: DT_FLOAT shape: 2 shape: 2 }
  )");
  reply.mutable_part(0)->set_content(Floats({5}));
  reply.mutable_part(1)->set_content(Floats({1}));
  ASSERT_TRUE(parts.Add(reply).ok());
  reply =
      Reply(R"(step: 7 part {} part {} part { name: "global_step" dtype: DT_INT64 content: "\x07\0\0\0\0\0\0\0" })");
  reply.mutable_part(0)->set_content(Floats({2}));
  reply.mutable_part(1)->set_content(Floats({3, 4}));
  ASSERT_TRUE(parts.Add(reply).ok());
  const VariablesAtStep read = parts.Take().value();
  EXPECT_EQ(read.step, 7);
  ASSERT_EQ(read.variables.size(), 3u);
  EXPECT_THAT(read.variables[0].value.flat<float>(), ElementsAre(5));
  EXPECT_EQ(read.variables[1].name, "w");
  EXPECT_EQ(read.variables[1].shape, Shape({2, 2}));
  EXPECT_THAT(read.variables[1].value.flat<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read.variables[2].value.flat<int64_t>(), ElementsAre(7));
}

TEST(VariablePartsTest, TakesNamesAlone) {
  VariableParts parts(/*names_only=*/true);
  ASSERT_TRUE(parts.Add(Reply(R"(step: 7 part { name: "w" dtype: DT_FLOAT shape: 2 })")).ok());
  ASSERT_TRUE(parts.Add(Reply(R"(step: 8 part { name: "v" dtype: DT_FLOAT })")).ok());
  const VariablesAtStep read = parts.Take().value();
  ASSERT_EQ(read.variables.size(), 2u);
  EXPECT_EQ(read.variables[0].shape, Shape({2}));
  EXPECT_EQ(read.variables[0].value.dtype(), v1::DT_INVALID);
  VariableParts with_content(/*names_only=*/true);
  EXPECT_FALSE(with_content.Add(Reply(R"(part { name: "w" dtype: DT_FLOAT content: "1234" })")).ok());
}

TEST(VariablePartsTest, RefusesInconsistentReplies) {
  // Each case has a list of replies, of which the last one is invalid, and the expected error.
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{""}, "no part"},
      {{R"(part { content: "1234" })"}, "continues nothing"},
      {{R"(part { name: "a" dtype: DT_FLOAT content: "1234" } part { content: "1234" })"}, "continues nothing"},
      {{R"(part { name: "a" dtype: DT_FLOAT content: "12345" })"}, "5 bytes for a, which lacks 4"},
      {{R"(part { name: "a" dtype: DT_FLOAT content: "12" })", R"(part { content: "345" })"}, "which lacks 2"},
      {{R"(part { name: "a" dtype: DT_FLOAT content: "1" } part { name: "b" dtype: DT_FLOAT })"}, "3 bytes too early"},
      {{R"(part { name: "a" dtype: DT_STRING })"}, "variable a is"},
      {{R"(part { name: "a" dtype: DT_FLOAT shape: -1 })"}, "variable a"},
      {{R"(part { name: "a" dtype: DT_DOUBLE shape: 4611686018427387904 shape: 1 })"}, "variable a is float64"},
      {{R"(step: 1 part { name: "a" dtype: DT_FLOAT })", R"(step: 2 part { content: "1234" })"}, "step 2 after step 1"},
  };
  for (const auto& [replies, why] : cases) {
    VariableParts parts(/*names_only=*/false);
    absl::Status status;
    for (const std::string& text : replies) {
      ASSERT_TRUE(status.ok()) << status;
      status = parts.Add(Reply(text));
    }
    EXPECT_TRUE(absl::IsInternal(status)) << replies.back() << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST(VariablePartsTest, RefusesAnEndThatIsNone) {
  EXPECT_TRUE(absl::IsInternal(VariableParts(false).Take().status()));
  VariableParts parts(/*names_only=*/false);
  // A variable of 2^62 elements. No memory may be allocated for it before its content arrives.
  ASSERT_TRUE(parts.Add(Reply(R"(part { name: "a" dtype: DT_UINT8 shape: 4611686018427387904 content: "1" })")).ok());
  EXPECT_THAT(std::string(parts.Take().status().message()), HasSubstr("a lacks 4611686018427387903 bytes"));
}

}  // namespace
}  // namespace lockstep
