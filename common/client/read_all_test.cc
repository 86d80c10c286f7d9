#include "lockstep/common/client/read_all.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// Returns a reply with the first or the second half of the only variable, "w".
v1::ReadVariablesReply Half(uint64_t id, int64_t step, bool first) {
  v1::ReadVariablesReply reply;
  reply.set_read_id(id);
  reply.set_step(step);
  v1::VariablePart* const part = reply.add_part();
  if (first) {
    part->set_name("w");
    part->set_dtype(v1::DT_UINT8);
    part->add_shape(4);
    reply.set_next_position(2);
  }
  part->set_content(first ? "ab" : "cd");
  return reply;
}

TEST(ReadAllTest, CallsUntilAllHasCome) {
  FakeChiefClient client;
  client.reads = {Half(9, 7, true), Half(9, 7, false)};
  ReadAllOptions options;
  options.names = {"w"};
  const auto read = ReadAll(&client, options);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step, 7);
  EXPECT_EQ(read->variables[0].value.bytes(), "abcd");
  const auto calls = client.calls().reads;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_THAT(calls[0].name(), ElementsAre("w"));
  EXPECT_EQ(calls[0].read_id(), 0u);
  EXPECT_TRUE(calls[1].name().empty());
  EXPECT_EQ(calls[1].read_id(), 9u);
  EXPECT_EQ(calls[1].position(), 2);
}

TEST(ReadAllTest, RestartsAReadThatTheChiefEnded) {
  FakeChiefClient client;
  client.reads = {Half(9, 7, true),  absl::ResourceExhaustedError("cut"),
                  Half(10, 8, true), absl::AbortedError("new"),
                  Half(11, 9, true), Half(11, 9, false)};
  const auto read = ReadAll(&client, {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step, 9);
  EXPECT_EQ(read->variables[0].value.bytes(), "abcd");
}

TEST(ReadAllTest, GivesUpAfterItsAttempts) {
  FakeChiefClient client;
  client.reads.assign(3, absl::ResourceExhaustedError("cut"));
  ReadAllOptions options;
  options.attempts = 3;
  EXPECT_TRUE(absl::IsResourceExhausted(ReadAll(&client, options).status()));
  EXPECT_EQ(client.calls().reads.size(), 3u);
}

TEST(ReadAllTest, ReturnsOtherErrorsImmediately) {
  for (const absl::Status& error : {absl::UnavailableError("a"), absl::InvalidArgumentError("b")}) {
    FakeChiefClient client;
    client.reads = {error};
    EXPECT_EQ(ReadAll(&client, {}).status(), error);
    EXPECT_EQ(client.calls().reads.size(), 1u);
  }
}

TEST(ReadAllTest, AChiefThatDoesNotAdvanceIsAnError) {
  FakeChiefClient client;
  client.reads = {Half(9, 7, true), Half(9, 7, false)};
  client.reads[1]->set_next_position(2);
  EXPECT_TRUE(absl::IsInternal(ReadAll(&client, {}).status()));
}

}  // namespace
}  // namespace lockstep
