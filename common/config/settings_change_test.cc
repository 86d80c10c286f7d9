#include "lockstep/common/config/settings_change.h"

#include <cstdint>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::RunSpec Spec(const std::string& last_batch = "SPAN") {
  config::v1::RunSpec spec;
  EXPECT_TRUE(ParseTextProto("model { layer { name: 'logits' dense { units: 3 } } loss { softmax_cross_entropy {} } } "
                             "input { split { name: 'train' synthetic { examples: 96 shape: 4 classes: 3 } } "
                             "batch_size: 4 last_batch: " +
                                 last_batch +
                                 " } optimizer { sgd {} learning_rate { initial: 0.5 } } "
                                 "training { steps: 12 replicas_to_aggregate: 2 }",
                             "the test", &spec)
                  .ok());
  return spec;
}

SettingsChange BatchSize(int64_t batch_size) {
  SettingsChange change;
  change.batch_size = batch_size;
  return change;
}

std::string Error(const config::v1::RunSpec& spec, const SettingsChange& change,
                  absl::optional<int64_t> examples = 96) {
  const absl::Status status = WithSettings(spec, change, examples).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(SettingsChangeTest, AConstantRateReplacesTheSchedule) {
  config::v1::RunSpec spec = Spec();
  spec.mutable_optimizer()->mutable_learning_rate()->set_warmup_steps(5);
  spec.mutable_optimizer()->mutable_learning_rate()->mutable_exponential()->set_decay_steps(2);
  spec.mutable_optimizer()->mutable_learning_rate()->mutable_exponential()->set_decay_rate(0.5f);
  SettingsChange change;
  change.learning_rate = 0.25f;
  auto changed = WithSettings(spec, change, 96);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->optimizer().learning_rate().DebugString(), "initial: 0.25\n");
  change.learning_rate = 0;
  changed = WithSettings(spec, change, 96);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->optimizer().learning_rate().DebugString(), "piecewise {\n  values: 0\n}\n");
  change.learning_rate = -1;
  EXPECT_THAT(Error(Spec(), change), HasSubstr("optimizer.learning_rate.initial is -1"));
}

TEST(SettingsChangeTest, WorkersUseOnlyTheirOwnSettings) {
  const auto changes = [](const std::function<void(config::v1::RunSpec*)>& edit) {
    config::v1::RunSpec after = Spec();
    edit(&after);
    return ChangesGradients(Spec(), after);
  };
  EXPECT_FALSE(changes([](auto* spec) { spec->mutable_optimizer()->mutable_learning_rate()->set_initial(1); }));
  EXPECT_FALSE(changes([](auto* spec) { spec->mutable_optimizer()->mutable_momentum()->set_momentum(0.5f); }));
  EXPECT_TRUE(changes([](auto* spec) { spec->mutable_input()->set_batch_size(5); }));
  EXPECT_TRUE(changes([](auto* spec) { spec->mutable_optimizer()->mutable_clip()->set_by_value(1); }));
  EXPECT_TRUE(changes([](auto* spec) { spec->mutable_optimizer()->add_multipliers()->set_factor(2); }));
}

TEST(SettingsChangeTest, ChangesWhatIsGivenAndNothingElse) {
  const auto larger = WithSettings(Spec(), BatchSize(16), 96);
  ASSERT_TRUE(larger.ok()) << larger.status();
  EXPECT_EQ(larger->input().batch_size(), 16);
  EXPECT_EQ(larger->optimizer().learning_rate().initial(), 0.5f);
  SettingsChange both = BatchSize(8);
  both.optimizer = Spec().optimizer();
  both.optimizer->mutable_learning_rate()->set_initial(1);
  const auto changed = WithSettings(Spec(), both, 96);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->input().batch_size(), 8);
  EXPECT_EQ(changed->optimizer().learning_rate().initial(), 1);
  EXPECT_EQ(WithSettings(Spec(), SettingsChange(), 96)->input().batch_size(), 4);
}

TEST(SettingsChangeTest, NamesWhatIsWrong) {
  EXPECT_THAT(Error(Spec(), BatchSize(0)), HasSubstr("input.batch_size is 0"));
  EXPECT_THAT(Error(Spec(), BatchSize(-4)), HasSubstr("input.batch_size is -4"));
  EXPECT_THAT(Error(Spec(), BatchSize(INT64_MAX)), HasSubstr("input.batch_size is 9223372036854775807"));
  SettingsChange rate = BatchSize(8);
  rate.optimizer = Spec().optimizer();
  rate.optimizer->mutable_learning_rate()->set_initial(-1);
  EXPECT_THAT(Error(Spec(), rate), HasSubstr("optimizer.learning_rate.initial is -1"));
}

TEST(SettingsChangeTest, DroppingTheRestNeedsOneWholeBatch) {
  EXPECT_TRUE(WithSettings(Spec("DROP"), BatchSize(48), 96).ok());
  EXPECT_THAT(Error(Spec("DROP"), BatchSize(49)), HasSubstr("input.batch_size is 49: the split has 96 examples"));
  EXPECT_TRUE(WithSettings(Spec("DROP"), BatchSize(49), absl::nullopt).ok()) << "nobody knows how many there are";
  EXPECT_TRUE(WithSettings(Spec(), BatchSize(49), 96).ok()) << "an epoch follows the other";
}

TEST(SettingsChangeTest, OwnInputHasNoBatchSize) {
  config::v1::RunSpec own = Spec();
  own.clear_model();
  own.clear_input();
  EXPECT_THAT(Error(own, BatchSize(8)), HasSubstr("has no input"));
}

}  // namespace
}  // namespace lockstep
