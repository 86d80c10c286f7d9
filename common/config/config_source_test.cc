#include "lockstep/common/config/config_source.h"

#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {
namespace {

constexpr char kText[] = R"(model {
  layer { name: "a" flatten {} }
  layer {
    name: "b"
    dense {
      units: 3
    }
  }
}
evaluation { metric: "accuracy"
             metric: "auc" }
training { steps: 1 })";

std::string Located(const std::string& message, const std::vector<std::string>& overrides = {}) {
  config::v1::RunSpec config;
  ConfigSource source("run.textproto", config.GetDescriptor(), overrides);
  EXPECT_EQ(ParseTextProto(kText, "run.textproto", &config, source.lines()), absl::OkStatus());
  return std::string(source.Locate(absl::InvalidArgumentError(message)).message());
}

TEST(ConfigSourceTest, NamesTheLineOfAField) {
  EXPECT_EQ(Located("model.layer[1].dense.units is 3"), "run.textproto:6: model.layer[1].dense.units is 3");
  EXPECT_EQ(Located("model.layer[0]: layer 'a'"), "run.textproto:2: model.layer[0]: layer 'a'");
  EXPECT_EQ(Located("evaluation.metric[1]: none"), "run.textproto:11: evaluation.metric[1]: none");
}

TEST(ConfigSourceTest, NamesTheBlockThatLacksAField) {
  EXPECT_EQ(Located("model.layer[1].dense.bias_initializer.constant is"),
            "run.textproto:5: model.layer[1].dense.bias_initializer.constant is");
  EXPECT_EQ(Located("model.layer[7].name"), "run.textproto:1: model.layer[7].name");
  EXPECT_EQ(Located("optimizer has no kind"), "run.textproto: optimizer has no kind");
}

TEST(ConfigSourceTest, LocatesEachLine) {
  EXPECT_EQ(Located("training.steps is 1\nno field\nmodel has"),
            "run.textproto:12: training.steps is 1\nno field\nrun.textproto:1: model has");
}

TEST(ConfigSourceTest, LeavesOverriddenFieldsAlone) {
  EXPECT_EQ(Located("training.steps is 0", {"training.steps=0"}), "training.steps is 0");
  EXPECT_EQ(Located("model.layer[1].dense.units is 0", {"model.layer[1].dense={}"}), "model.layer[1].dense.units is 0");
  EXPECT_EQ(Located("model.layer[1].dense.units is 0", {"model.layer[1].name=c"}),
            "run.textproto:6: model.layer[1].dense.units is 0");
}

TEST(ConfigSourceTest, KeepsTheCode) {
  config::v1::RunSpec config;
  const ConfigSource source("f", config.GetDescriptor(), {});
  EXPECT_EQ(source.Locate(absl::OkStatus()), absl::OkStatus());
  EXPECT_EQ(source.Locate(InField("model", absl::NotFoundError("x"))), absl::NotFoundError("f: model: x"));
}

}  // namespace
}  // namespace lockstep
