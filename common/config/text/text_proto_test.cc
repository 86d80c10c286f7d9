#include "lockstep/common/config/text/text_proto.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {
namespace {

std::string ErrorOf(absl::string_view text) {
  config::v1::RunSpec config;
  const absl::Status status = ParseTextProto(text, "run.textproto", &config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(TextProtoTest, ParsesWhatItPrints) {
  config::v1::RunSpec config;
  const char* text = R"(
# The smallest useful example.
model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} }
        parameter { key: "b" value: "2" } parameter { key: "a" value: "1" } }
input { split { name: "train" idx { images: "i.gz" labels: 'l.gz' } } batch_size: 64 }
optimizer { sgd {} learning_rate { piecewise { boundaries: [1, 2] values: 0.3 values: [0.2, 0.1] } } };
)";
  ASSERT_TRUE(ParseTextProto(text, "run.textproto", &config).ok());
  EXPECT_EQ(config.model().layer(0).dense().units(), 10);
  config::v1::RunSpec again;
  ASSERT_TRUE(ParseTextProto(PrintTextProto(config), "again", &again).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again, config));
  EXPECT_EQ(PrintTextProto(again), PrintTextProto(config));
}

TEST(TextProtoTest, NestingIsLimited) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "optimizer { group { ";
  EXPECT_EQ(ErrorOf(text), "run.textproto:1:1011: there are more than 100 blocks within one another");
}

TEST(TextProtoTest, ClearsTheMessageFirst) {
  config::v1::RunSpec config;
  config.mutable_training()->set_seed(5);
  ASSERT_TRUE(ParseTextProto("training { steps: 1 }", "f", &config).ok());
  EXPECT_EQ(config.training().seed(), 0);
}

TEST(TextProtoTest, AnUnknownFieldIsNamedWithTheNearest) {
  EXPECT_EQ(ErrorOf("training {\n  stepz: 10\n}"),
            "run.textproto:2:3: training.stepz: TrainingConfig has no field \"stepz\", did you mean \"steps\"?");
  EXPECT_EQ(ErrorOf("foo { bar: 1 }"),
            "run.textproto:1:1: foo: RunSpec has no field \"foo\", it has: model, input, optimizer, training, "
            "checkpoint, summary, evaluation, cluster, compression, audit");
  EXPECT_EQ(ErrorOf("input { split: [ { name: \"a\" }, { nam: 3 } ] }"),
            "run.textproto:1:35: input.split.nam: Split has no field \"nam\", did you mean \"name\"?");
}

TEST(TextProtoTest, WrongTypeErrorNamesTheRightType) {
  EXPECT_EQ(ErrorOf("training { steps: ten }"),
            "run.textproto:1:19: training.steps: takes an integer, such as 1000, not ten");
  EXPECT_EQ(ErrorOf("training { steps: 10.5 }"),
            "run.textproto:1:19: training.steps: takes an integer, such as 1000, not 10.5");
  EXPECT_EQ(ErrorOf("training { steps: 99999999999999999999 }"),
            "run.textproto:1:19: training.steps: takes an integer, such as 1000, not 99999999999999999999");
  EXPECT_EQ(ErrorOf("training { seed: -1 }"),
            "run.textproto:1:18: training.seed: takes an integer, 0 or more, such as 1000, not -1");
  EXPECT_EQ(ErrorOf("training { steps: \"10\" }"),
            "run.textproto:1:19: training.steps: takes an integer, such as 1000, not \"10\"");
  EXPECT_EQ(ErrorOf("optimizer { adam { beta1: abc } }"),
            "run.textproto:1:27: optimizer.adam.beta1: takes a number, such as 0.1, not abc");
  EXPECT_EQ(ErrorOf("optimizer { adam: 3 }"),
            "run.textproto:1:19: optimizer.adam: takes a block of Adam, such as { }, not 3");
  EXPECT_EQ(ErrorOf("optimizer { adam 3 }"),
            "run.textproto:1:18: optimizer.adam: takes a block of Adam, such as { }, not 3");
  EXPECT_EQ(ErrorOf("input { last_batch: FOO batch_size: 3 }"),
            "run.textproto:1:21: input.last_batch: takes one of SPAN, DROP, such as DROP, not FOO");
  EXPECT_EQ(ErrorOf("input { no_shuffle: maybe }"),
            "run.textproto:1:21: input.no_shuffle: takes true or false, such as true, not maybe");
  EXPECT_EQ(ErrorOf("input { split { name: train } }"),
            "run.textproto:1:23: input.split.name: takes a string, such as \"name\", not train");
  EXPECT_EQ(ErrorOf("evaluation { metric: [\"a\", b] }"),
            "run.textproto:1:28: evaluation.metric: takes a string, such as \"name\", not b");
}

TEST(TextProtoTest, PlacesCountBytesAndTabsAsOneColumn) {
  EXPECT_EQ(ErrorOf("# a comment { with: braces\n\ttraining {\tsteps: ten }"),
            "run.textproto:2:20: training.steps: takes an integer, such as 1000, not ten");
  EXPECT_EQ(ErrorOf("checkpoint { warm_start: \"{ # no \\\" comment\" }\n training { steps: x }"),
            "run.textproto:2:20: training.steps: takes an integer, such as 1000, not x");
}

TEST(TextProtoTest, ABraceTooFewOrTooManyIsNamed) {
  EXPECT_EQ(ErrorOf("training { steps: 10"),
            "run.textproto:1:21: training: expected a field's name or \"}\", not the end of the file");
  EXPECT_EQ(ErrorOf("training { } }"), "run.textproto:1:14: expected a field's name, not }");
  EXPECT_EQ(ErrorOf("training { steps: 1 } $"), "run.textproto:1:23: expected a field's name, not $");
  EXPECT_EQ(ErrorOf("training { steps: }"),
            "run.textproto:1:19: training.steps: takes an integer, such as 1000, not }");
}

TEST(TextProtoTest, AFieldGivenTwiceIsNamed) {
  EXPECT_EQ(ErrorOf("training { steps: 10 steps: 11 }"),
            "run.textproto:1:22: training.steps: Non-repeated field \"steps\" is specified multiple times");
  EXPECT_EQ(
      ErrorOf("optimizer { sgd {} adam {} }"),
      "run.textproto:1:20: optimizer.adam: Field \"adam\" is specified along with field \"sgd\", another member of "
      "oneof \"kind\"");
}

TEST(TextProtoTest, EveryCutOfATextIsOneLineOrParsed) {
  const std::string text =
      "model { layer { name: \"a\\\"\" dense { units: 10 activation: RELU } } }\n# c\n"
      "optimizer { learning_rate { initial: 1e-3 piecewise { boundaries: [1, 2] } } }";
  int errors = 0;
  for (size_t size = 0; size < text.size(); ++size) {
    config::v1::RunSpec config;
    const absl::Status status = ParseTextProto(text.substr(0, size), "f", &config);
    if (status.ok()) continue;
    ++errors;
    EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("f:"));
  }
  EXPECT_GT(errors, 100);
}

TEST(TextProtoTest, BytesThatAreNotTextAreAnError) {
  EXPECT_THAT(ErrorOf(absl::string_view("\0\x80\xff{", 4)), ::testing::StartsWith("run.textproto:1:1"));
}

}  // namespace
}  // namespace lockstep
