#include "lockstep/worker/session/workload/model_parts.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/override.h"
#include "lockstep/worker/data/images/decode_image.h"
#include "lockstep/worker/session/testing/tiny_workload.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

std::vector<v1::NamedDigest> Parts(const std::string& override = "") {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    model {
      layer { name: "hidden" dense { units: 5 activation: RELU } } layer { name: "logits" dense { units: 4 } }
      loss { softmax_cross_entropy {} }
    }
    input { split { name: "train" synthetic { examples: 50 shape: 12 classes: 4 } } batch_size: 3 }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { steps: 10 replicas_to_aggregate: 2 seed: 7 }
  )",
                                                            &config));
  if (!override.empty()) {
    EXPECT_TRUE(ApplyOverride(override, &config).ok()) << override;
  }
  ApplyDefaults(&config);
  WorkloadOptions options;
  options.prefetch = false;
  return ModelParts(config, *LoadWorkload(config, options).value().model);
}

// Returns the names of the parts whose digests an override of the configuration changes.
std::string Differing(const std::string& override) {
  const std::vector<v1::NamedDigest> parts = Parts(), other = Parts(override);
  EXPECT_EQ(parts.size(), other.size());
  std::string names;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].name(), other[i].name());
    if (parts[i].digest() != other[i].digest()) names += (names.empty() ? "" : ", ") + parts[i].name();
  }
  return names;
}

TEST(ModelPartsTest, NameWhatDiffers) {
  EXPECT_EQ(Differing("model.layer[0].dense.activation=TANH"), "layer hidden");
  EXPECT_EQ(Differing("model.loss[0].softmax_cross_entropy.label_smoothing=0.1"), "losses and regularizers");
  EXPECT_EQ(Differing("input.batch_size=4"), "input");
  EXPECT_EQ(Differing("training.seed=8"), "training");
  EXPECT_EQ(Differing("optimizer.clip.by_norm=1"), "multipliers and clips");
  EXPECT_EQ(Differing("compression.gradients=BFLOAT16"), "compression");
}

TEST(ModelPartsTest, TheImageDecoderIsNamedWhereItIsUsed) {
  config::v1::RunSpec config;
  config.mutable_input()->add_split()->set_name("train");
  config.mutable_input()->add_split()->set_name("test");
  config.mutable_input()->mutable_split(1)->mutable_images();
  const TinyModel model([] {}, [] {});
  const auto has_decoder = [&] {
    for (const v1::NamedDigest& part : ModelParts(config, model)) {
      if (part.name() == "image decoder " + ImageDecoderVersion()) return true;
    }
    return false;
  };
  EXPECT_FALSE(has_decoder());
  config.mutable_input()->mutable_split(0)->mutable_images();
  EXPECT_TRUE(has_decoder());
  config.mutable_input()->mutable_split(0)->mutable_tfrecord();
  EXPECT_FALSE(has_decoder());
  config.mutable_input()->mutable_split(0)->mutable_tfrecord()->mutable_image();
  EXPECT_TRUE(has_decoder());
}

TEST(ModelPartsTest, WhatChangesNoGradientIsInNone) {
  for (const char* override :
       {"training.steps=11", "optimizer.learning_rate.initial=0.2", "cluster.compute_threads=2", "audit.fraction=0.5",
        "checkpoint.every_steps=5", "optimizer.clip.mean_by_global_norm=1"}) {
    EXPECT_EQ(Differing(override), "") << override;
  }
}

// A custom model that has a version.
class VersionedModel : public TinyModel {
 public:
  explicit VersionedModel(std::string version) : TinyModel(nullptr, nullptr), version_(std::move(version)) {}
  std::vector<Part> Fingerprint() const override { return {{"two towers", version_}}; }

 private:
  const std::string version_;
};

TEST(ModelPartsTest, AnOwnModelHasNameParametersVersion) {
  config::v1::RunSpec config;
  config.mutable_model()->set_registered("towers");
  const auto parts = ModelParts(config, VersionedModel("1"));
  EXPECT_EQ(parts[0].name(), "two towers");
  EXPECT_EQ(parts[1].name(), "model towers");
  EXPECT_NE(ModelParts(config, VersionedModel("2"))[0].digest(), parts[0].digest());
  (*config.mutable_model()->mutable_parameter())["width"] = "3";
  EXPECT_NE(ModelParts(config, VersionedModel("1"))[1].digest(), parts[1].digest());
}

}  // namespace
}  // namespace lockstep
