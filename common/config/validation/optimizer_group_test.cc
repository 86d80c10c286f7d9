#include "lockstep/common/config/validation/optimizer_group.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns the optimizer of the configuration's first group as text.
std::string Merged(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return OptimizerOfGroup(config, config.group(0)).ShortDebugString();
}

TEST(OptimizerGroupTest, WhatIsAbsentIsTheWholes) {
  EXPECT_EQ(Merged("adam { beta1: 0.8 weight_decay: 0.1 } learning_rate { initial: 2 } moving_average { decay: 0.9 } "
                   "multipliers { variables: 'x' factor: 2 } clip { by_norm: 1 mean_by_global_norm: 3 } "
                   "group { variables: 'b' rate_factor: 2 }"),
            "adam { beta1: 0.8 weight_decay: 0.1 } learning_rate { initial: 2 } moving_average { decay: 0.9 }");
}

TEST(OptimizerGroupTest, SettingsTakeThePlaceOfTheWholes) {
  EXPECT_EQ(Merged("adam { beta1: 0.8 } learning_rate { initial: 2 warmup_steps: 3 } moving_average { decay: 0.9 } "
                   "group { variables: 'b' optimizer { adam { beta2: 0.5 } learning_rate { initial: 4 } "
                   "moving_average { decay: 0.5 } clip { mean_by_global_norm: 1 } } }"),
            "adam { beta2: 0.5 } learning_rate { initial: 4 } clip { mean_by_global_norm: 1 } "
            "moving_average { decay: 0.5 }");
  EXPECT_EQ(Merged("sgd {} moving_average { decay: 0.9 } group { variables: 'b' moving_average: false }"), "sgd { }");
}

TEST(OptimizerGroupTest, WeightDecayIsTheRules) {
  for (const char* rule : {"sgd", "momentum", "adam", "nadam", "lion"}) {
    const std::string merged = Merged(std::string(rule) + " { weight_decay: 0.1 } group { weight_decay: 0.5 }");
    EXPECT_EQ(merged, std::string(rule) + " { weight_decay: 0.5 }");
  }
  EXPECT_EQ(Merged("nadam { weight_decay: 1 decoupled_weight_decay: true } group { weight_decay: 0 }"), "nadam { }");
  config::v1::OptimizerConfig adagrad;
  adagrad.mutable_adagrad();
  EXPECT_FALSE(HasWeightDecay(adagrad));
}

}  // namespace
}  // namespace lockstep
