#include "lockstep/common/config/text/override.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::testing::HasSubstr;

config::v1::RunSpec Config(absl::string_view text) {
  config::v1::RunSpec config;
  const absl::Status status = ParseTextProto(text, "test", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

// Returns the configuration `before` as text after applying the overrides.
std::string After(absl::string_view before, std::initializer_list<const char*> overrides) {
  config::v1::RunSpec config = Config(before);
  for (const char* override : overrides) {
    const absl::Status status = ApplyOverride(override, &config);
    EXPECT_TRUE(status.ok()) << status;
  }
  return config.ShortDebugString();
}

std::string ErrorOf(absl::string_view before, const char* override) {
  config::v1::RunSpec config = Config(before);
  const std::string unchanged = config.SerializeAsString();
  const absl::Status status = ApplyOverride(override, &config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << override;
  EXPECT_EQ(config.SerializeAsString(), unchanged) << override;
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos) << status;
  return std::string(status.message());
}

TEST(OverrideTest, SetsScalarsOfEveryType) {
  EXPECT_EQ(After("", {"training.steps=500"}), "training { steps: 500 }");
  EXPECT_EQ(After("training { steps: 9 }", {"training.steps=0"}), "training { }");
  EXPECT_EQ(After("", {"training.seed=18446744073709551615"}), "training { seed: 18446744073709551615 }");
  EXPECT_EQ(After("", {"optimizer.learning_rate.initial=1e-3"}), "optimizer { learning_rate { initial: 0.001 } }");
  EXPECT_EQ(After("", {"optimizer.learning_rate.initial=+.5"}), "optimizer { learning_rate { initial: 0.5 } }");
  EXPECT_EQ(After("", {"optimizer.learning_rate.polynomial.end=-2"}),
            "optimizer { learning_rate { polynomial { end: -2 } } }");
  EXPECT_EQ(After("", {"input.no_shuffle=true"}), "input { no_shuffle: true }");
  EXPECT_EQ(After("input { no_shuffle: true }", {"input.no_shuffle=0"}), "input { }");
  EXPECT_EQ(After("", {"input.last_batch=DROP"}), "input { last_batch: DROP }");
  EXPECT_EQ(After("", {"input.last_batch=drop"}), "input { last_batch: DROP }");
  EXPECT_EQ(After("", {"checkpoint.warm_start=/a b/model.ckpt-7"}), "checkpoint { warm_start: \"/a b/model.ckpt-7\" }");
  EXPECT_EQ(After("", {"checkpoint.warm_start=\"quoted\""}), "checkpoint { warm_start: \"quoted\" }");
  EXPECT_EQ(After("", {"checkpoint.warm_start=a=b \"c\" \\d\n"}),
            "checkpoint { warm_start: \"a=b \\\"c\\\" \\\\d\\n\" }");
  EXPECT_EQ(After("checkpoint { warm_start: \"x\" }", {"checkpoint.warm_start="}), "checkpoint { }");
}

TEST(OverrideTest, OptionalScalarsSetToZeroArePresent) {
  config::v1::RunSpec config;
  ASSERT_TRUE(ApplyOverride("checkpoint.every_seconds=0", &config).ok());
  EXPECT_TRUE(config.checkpoint().has_every_seconds());
  EXPECT_EQ(config.checkpoint().every_seconds(), 0);
}

TEST(OverrideTest, KeepsTheRestOfTheBlock) {
  EXPECT_EQ(After("training { steps: 1 seed: 2 }", {"training.steps=3"}), "training { steps: 3 seed: 2 }");
}

TEST(OverrideTest, APathThroughAOneofChoosesIt) {
  EXPECT_EQ(After("optimizer { sgd {} }", {"optimizer.adam.beta1=0.8"}), "optimizer { adam { beta1: 0.8 } }");
  EXPECT_EQ(After("optimizer { adam { beta1: 0.8 } }", {"optimizer.adam.beta2=0.9"}),
            "optimizer { adam { beta1: 0.8 beta2: 0.9 } }");
  EXPECT_EQ(After("optimizer { adam { beta1: 0.8 } }", {"optimizer.sgd="}), "optimizer { sgd { } }");
}

TEST(OverrideTest, ReplacesAWholeBlock) {
  EXPECT_EQ(After("optimizer { adam { beta1: 0.8 } }", {"optimizer.adam={beta2: 0.9}"}),
            "optimizer { adam { beta2: 0.9 } }");
  EXPECT_EQ(After("", {"optimizer=sgd {} learning_rate { initial: 0.5 }"}),
            "optimizer { sgd { } learning_rate { initial: 0.5 } }");
  EXPECT_EQ(After("training { steps: 5 }", {"training={}"}), "training { }");
}

TEST(OverrideTest, ElementsOfListsAreSetAndAppended) {
  const char* two = "model { layer { name: \"a\" dense { units: 1 } } layer { name: \"b\" } }";
  EXPECT_EQ(After(two, {"model.layer[1].dense.units=64"}),
            "model { layer { name: \"a\" dense { units: 1 } } layer { name: \"b\" dense { units: 64 } } }");
  EXPECT_EQ(After(two, {"model.layer[0]={name: \"c\"}"}), "model { layer { name: \"c\" } layer { name: \"b\" } }");
  EXPECT_EQ(After("", {"model.layer[0].name=x", "model.layer[].name=y", "model.layer[1].flatten="}),
            "model { layer { name: \"x\" } layer { name: \"y\" flatten { } } }");
  EXPECT_EQ(After("evaluation { metric: [\"a\", \"b\"] }", {"evaluation.metric[1]=auc", "evaluation.metric[]=top_5"}),
            "evaluation { metric: \"a\" metric: \"auc\" metric: \"top_5\" }");
}

TEST(OverrideTest, AListOfScalarsIsReplaced) {
  EXPECT_EQ(After("evaluation { metric: \"rmse\" }", {"evaluation.metric=accuracy, auc"}),
            "evaluation { metric: \"accuracy\" metric: \"auc\" }");
  EXPECT_EQ(After("", {"optimizer.learning_rate.piecewise.boundaries=[10,30]"}),
            "optimizer { learning_rate { piecewise { boundaries: 10 boundaries: 30 } } }");
  EXPECT_EQ(After("evaluation { metric: \"rmse\" }", {"evaluation.metric="}), "evaluation { }");
}

TEST(OverrideTest, MapEntriesAreSetByKey) {
  EXPECT_EQ(After("", {"model.parameter[depth]=3"}), "model { parameter { key: \"depth\" value: \"3\" } }");
  EXPECT_EQ(After("model { parameter { key: \"depth\" value: \"1\" } }", {"model.parameter.depth=2"}),
            "model { parameter { key: \"depth\" value: \"2\" } }");
  EXPECT_EQ(After("", {"model.parameter[a.b=c]=x=y"}), "model { parameter { key: \"a.b=c\" value: \"x=y\" } }");
}

TEST(OverrideTest, ErrorsNameFieldTypeAndExample) {
  EXPECT_EQ(
      ErrorOf("", "training.steps=ten"),
      "override \"training.steps=ten\": training.steps takes an integer, such as training.steps=1000, not \"ten\"");
  EXPECT_THAT(ErrorOf("", "training.steps="), HasSubstr("takes an integer, such as training.steps=1000, not \"\""));
  EXPECT_THAT(ErrorOf("", "training.steps=1.5"), HasSubstr("takes an integer"));
  EXPECT_THAT(ErrorOf("", "training.steps=99999999999999999999"), HasSubstr("takes an integer"));
  EXPECT_THAT(ErrorOf("", "training.steps=3 seed: 4"), HasSubstr("takes an integer"));
  EXPECT_THAT(ErrorOf("", "training.seed=-1"), HasSubstr("takes an integer, 0 or more"));
  EXPECT_THAT(ErrorOf("", "optimizer.adam.beta1=big"), HasSubstr("takes a number, such as optimizer.adam.beta1=0.1"));
  EXPECT_THAT(ErrorOf("", "optimizer.adam.beta1=nan"), HasSubstr("takes a number"));
  EXPECT_THAT(ErrorOf("", "input.no_shuffle=maybe"), HasSubstr("takes true or false, such as input.no_shuffle=true"));
  EXPECT_THAT(ErrorOf("", "input.last_batch=KEEP"),
              HasSubstr("takes one of SPAN, DROP, such as input.last_batch=DROP"));
  EXPECT_THAT(ErrorOf("", "optimizer.learning_rate.piecewise.values=1,x"), HasSubstr("takes a number"));
  EXPECT_THAT(ErrorOf("", "evaluation.metric[0][1]=x"), HasSubstr("malformed"));
}

TEST(OverrideTest, ErrorsSuggestTheNearestField) {
  EXPECT_EQ(ErrorOf("", "optimizer.adm.beta1=1"),
            "override \"optimizer.adm.beta1=1\": OptimizerConfig has no field \"adm\", did you mean \"adam\"?");
  EXPECT_THAT(ErrorOf("", "trainig.steps=1"), HasSubstr("did you mean \"training\"?"));
  EXPECT_THAT(ErrorOf("", "training.replicas=1"), HasSubstr("did you mean \"replicas_to_aggregate\"?"));
  EXPECT_THAT(ErrorOf("", "summary.zzzzzzzzzz=1"), HasSubstr("has no field \"zzzzzzzzzz\", it has: every_steps"));
  EXPECT_THAT(ErrorOf("model { layer {} }", "model.layer[0].flatten.rate=1"),
              HasSubstr("Flatten has no field \"rate\", nor any other"));
}

TEST(OverrideTest, ErrorsOfPathsSayWhatIsThere) {
  EXPECT_THAT(ErrorOf("", "steps"), HasSubstr("is not path=value, such as training.steps=1000"));
  EXPECT_THAT(ErrorOf("", "=5"), HasSubstr("is not path=value"));
  EXPECT_THAT(ErrorOf("", ".=5"), HasSubstr("has no field \"\""));
  EXPECT_THAT(ErrorOf("", "training.=5"), HasSubstr("has no field \"\""));
  EXPECT_THAT(ErrorOf("", "model.layer[0=5"), HasSubstr("is not path=value"));
  EXPECT_THAT(ErrorOf("", "model.layer[0]x=5"), HasSubstr("malformed"));
  EXPECT_THAT(ErrorOf("", "model.layer.name=a"), HasSubstr("layer is a list of 0 elements, say which: layer[0]"));
  EXPECT_THAT(ErrorOf("", "model.layer[3].name=a"), HasSubstr("layer[3] does not exist, layer has 0 elements; [0]"));
  EXPECT_THAT(ErrorOf("", "model.layer[-1].name=a"), HasSubstr("layer[-1] does not exist"));
  EXPECT_THAT(ErrorOf("", "model.layer[one].name=a"), HasSubstr("layer[one] does not exist"));
  EXPECT_THAT(ErrorOf("", "model.layer=5"), HasSubstr("is a list of blocks, set one of them: model.layer[0]={ }"));
  EXPECT_THAT(ErrorOf("", "training.steps.x=5"), HasSubstr("steps takes an integer, it has no fields"));
  EXPECT_THAT(ErrorOf("", "training[0].steps=5"), HasSubstr("training is not a list, it takes no [0]"));
  EXPECT_THAT(ErrorOf("", "model.parameter.a.b=5"), HasSubstr("list"));
  EXPECT_THAT(ErrorOf("", "training={steps: x}"), HasSubstr("training.steps: takes an integer, such as 1000, not x"));
  EXPECT_THAT(ErrorOf("", "training={} } optimizer {"), HasSubstr("expected a field's name"));
}

// Sets, by its path, every field that a configuration can hold. `within` holds the types of the enclosing blocks; a
// block of one of these types is not entered again.
void SetEveryField(const Descriptor& type, const std::string& prefix, std::vector<const Descriptor*> within,
                   int* count) {
  within.push_back(&type);
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    std::string path = prefix + field.name();
    if (field.is_map()) {
      path += "[key]";
    } else if (field.is_repeated()) {
      path += "[0]";
    }
    std::string value = "7";
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) value = field.enum_type()->value(1)->name();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) value = "true";
    const bool is_block = field.message_type() != nullptr && !field.is_map();
    if (is_block) value = "{}";
    config::v1::RunSpec config;
    const absl::Status status = ApplyOverride(path + "=" + value, &config);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_NE(config.ByteSizeLong(), 0) << path;
    ++*count;
    const bool recurs = std::count(within.begin(), within.end(), field.message_type()) > 0;
    if (is_block && !recurs) SetEveryField(*field.message_type(), path + ".", within, count);
  }
}

TEST(OverrideTest, EveryFieldOfAConfigurationCanBeSet) {
  int count = 0;
  SetEveryField(*config::v1::RunSpec::descriptor(), "", {}, &count);
  EXPECT_GT(count, 150);
}

}  // namespace
}  // namespace lockstep
