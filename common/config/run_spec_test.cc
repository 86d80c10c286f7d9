#include "lockstep/common/config/run_spec.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = R"(
model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} }
        regularizer { variables: "kernel" l2: 0.1 } }
input {
  split { name: "train" idx { images: "train-images.gz" labels: "/data/train-labels.gz" } }
  split { name: "test" idx { images: "../test-images.gz" labels: "test-labels.gz" } }
  batch_size: 64
}
optimizer { adam {} learning_rate { initial: 0.1 } }
training { steps: 1000 replicas_to_aggregate: 2 }
checkpoint { warm_start: "old/model.ckpt-7" }
)";

class RunSpecTest : public ::testing::Test {
 protected:
  RunSpecTest() {
    EXPECT_TRUE(fs_.CreateDirectory("/runs/a").ok());
    Write("/runs/a/run.textproto", kText);
  }

  void Write(const std::string& path, absl::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, path, text).ok());
  }

  config::v1::RunSpec Load(const std::vector<std::string>& overrides) {
    auto config = LoadRunSpec(&fs_, "/runs/a/run.textproto", overrides);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? *config : config::v1::RunSpec();
  }

  MemoryFileSystem fs_;
};

TEST_F(RunSpecTest, ReadsOverridesAndCompletes) {
  const config::v1::RunSpec config = Load({"training.steps=5", "optimizer.adam.beta1=0.5"});
  EXPECT_EQ(config.training().steps(), 5);
  EXPECT_EQ(config.training().replicas_to_aggregate(), 2);
  EXPECT_EQ(config.optimizer().adam().beta1(), 0.5f);
  EXPECT_EQ(config.optimizer().adam().beta2(), 0.999f);
  EXPECT_EQ(config.cluster().lease_seconds(), 5);
}

TEST_F(RunSpecTest, PathsOfTheFileAreRelativeToIt) {
  const config::v1::RunSpec config = Load({"input.split[1].idx.labels=here.gz"});
  EXPECT_EQ(config.input().split(0).idx().images(), "/runs/a/train-images.gz");
  EXPECT_EQ(config.input().split(0).idx().labels(), "/data/train-labels.gz");
  EXPECT_EQ(config.input().split(1).idx().images(), "/runs/a/../test-images.gz");
  EXPECT_EQ(config.input().split(1).idx().labels(), "here.gz");
  EXPECT_EQ(config.checkpoint().warm_start(), "/runs/a/old/model.ckpt-7");
}

TEST_F(RunSpecTest, ResolvesThePathsOfEverySource) {
  config::v1::RunSpec config;
  ASSERT_TRUE(ParseTextProto("input { split { csv { file: 'a' } } split { libsvm { file: 'b' } } "
                             "split { tfrecord { file: 'c' file: '/d' } } split { synthetic {} } split {} "
                             "split { idx { images: 'e' } } "
                             "split { registered { name: 'f' file: 'g' file: '/h' } } }",
                             "t", &config)
                  .ok());
  ResolvePaths("/x", &config);
  EXPECT_EQ(config.ShortDebugString(),
            "input { split { csv { file: \"/x/a\" } } split { libsvm { file: \"/x/b\" } } "
            "split { tfrecord { file: \"/x/c\" file: \"/d\" } } split { synthetic { } } split { } "
            "split { idx { images: \"/x/e\" } } "
            "split { registered { name: \"f\" file: \"/x/g\" file: \"/h\" } } }");
  config::v1::RunSpec empty;
  ResolvePaths("/x", &empty);
  EXPECT_EQ(empty.ShortDebugString(), "");
}

TEST_F(RunSpecTest, OverridesAloneMakeAConfiguration) {
  const std::vector<std::string> overrides = {"training.steps=3",
                                              "optimizer.sgd=", "optimizer.learning_rate.initial=1"};
  const auto config = LoadRunSpec(&fs_, "", overrides);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->training().steps(), 3);
}

TEST_F(RunSpecTest, ErrorsNameTheirSource) {
  const auto missing = LoadRunSpec(&fs_, "/runs/none.textproto", {});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/runs/none.textproto"));

  Write("/runs/a/bad.textproto", "training { steps: ten }");
  const auto malformed = LoadRunSpec(&fs_, "/runs/a/bad.textproto", {});
  EXPECT_THAT(std::string(malformed.status().message()),
              HasSubstr("/runs/a/bad.textproto:1:19: training.steps: takes"));

  const auto override = LoadRunSpec(&fs_, "/runs/a/run.textproto", {"training.stepz=1"});
  EXPECT_THAT(std::string(override.status().message()), HasSubstr("did you mean \"steps\"?"));

  const auto invalid = LoadRunSpec(&fs_, "/runs/a/run.textproto", {"training.steps=0"});
  EXPECT_EQ(invalid.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(invalid.status().message(), "training.steps is 0, must be above 0, such as 1000");
}

bool SameWeights(const config::v1::RunSpec& a, const config::v1::RunSpec& b) {
  return google::protobuf::util::MessageDifferencer::Equals(WeightsConfig(a), WeightsConfig(b));
}

TEST_F(RunSpecTest, ExecutionSettingsDoNotChangeWeights) {
  for (const char* override :
       {"training.steps=7", "training.startup_delay_steps=3", "checkpoint.every_seconds=1", "checkpoint.keep=0",
        "summary.every_steps=1", "evaluation.every_steps=5", "evaluation.metric=auc", "cluster.lease_seconds=1",
        "cluster.compute_threads=4", "audit.fraction=0.5", "input.split[0].idx.images=/elsewhere/train-images.gz",
        "input.split[1].idx.images=other.gz", "optimizer.adam.beta1=0.9", "checkpoint.warm_start=/b/model.ckpt-7"}) {
    EXPECT_TRUE(SameWeights(Load({override}), Load({}))) << override;
  }
  // Writing a default explicitly makes no difference.
  config::v1::RunSpec bare;
  ASSERT_TRUE(ParseTextProto(kText, "t", &bare).ok());
  EXPECT_TRUE(SameWeights(bare, Load({})));
}

TEST_F(RunSpecTest, WhatChangesTheWeightsIsSeen) {
  for (const char* override :
       {"training.seed=1", "training.replicas_to_aggregate=3", "optimizer.adam.beta1=0.8",
        "optimizer.sgd=", "optimizer.learning_rate.initial=0.2", "model.layer[0].dense.units=11",
        "model.regularizer[0].l2=0.2", "input.batch_size=65", "input.split[0].idx.images=other.gz",
        "input.no_shuffle=true", "checkpoint.warm_start=/b/model.ckpt-8", "optimizer.clip.by_norm=1"}) {
    EXPECT_FALSE(SameWeights(Load({override}), Load({}))) << override;
  }
}

TEST_F(RunSpecTest, TheWeightsKeepARegisteredInput) {
  const auto with = [&](const std::string& registered) {
    return Load({"input.split[0].registered={" + registered + "}"});
  };
  const std::string own = "name: 'spirals' parameter { key: 'turns' value: '2' } file: '/a/points' ";
  EXPECT_TRUE(SameWeights(with(own), with("name: 'spirals' parameter { key: 'turns' value: '2' } file: '/b/points'")));
  EXPECT_FALSE(SameWeights(with(own), with("name: 'rings' parameter { key: 'turns' value: '2' } file: '/a/points'")));
  EXPECT_FALSE(SameWeights(with(own), with("name: 'spirals' parameter { key: 'turns' value: '3' } file: '/a/points'")));
  EXPECT_FALSE(SameWeights(with(own), with("name: 'spirals' file: '/a/points'")));
  EXPECT_FALSE(SameWeights(with(own), with(own + " file: '/a/more'")));
  EXPECT_FALSE(SameWeights(with(own), Load({})));
}

}  // namespace
}  // namespace lockstep
