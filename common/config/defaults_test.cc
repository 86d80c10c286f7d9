#include "lockstep/common/config/defaults.h"

#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/config/text/text_proto.h"

namespace lockstep {
namespace {

config::v1::RunSpec Parse(absl::string_view text) {
  config::v1::RunSpec config;
  const absl::Status status = ParseTextProto(text, "test", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

config::v1::RunSpec Defaulted(absl::string_view text) {
  config::v1::RunSpec config = Parse(text);
  ApplyDefaults(&config);
  return config;
}

TEST(DefaultsTest, AnEmptyConfigurationGetsTheDefaults) {
  EXPECT_EQ(Defaulted("").ShortDebugString(),
            "training { replicas_to_aggregate: 1 } checkpoint { every_seconds: 600 keep: 5 stop_seconds: 30 } "
            "summary { every_steps: 100 } "
            "cluster { lease_seconds: 5 chief_wait_seconds: 600 compute_threads: 1 shared_memory: true }");
}

TEST(DefaultsTest, LayersGetTheirNumbersAndInitializers) {
  EXPECT_EQ(Defaulted("model { layer { dense { units: 3 } } }").model().ShortDebugString(),
            "layer { dense { units: 3 kernel_initializer { glorot { } } bias_initializer { zeros { } } } }");
  EXPECT_EQ(
      Defaulted("model { layer { dense { no_bias: true kernel_initializer { he {} } } } }").model().ShortDebugString(),
      "layer { dense { no_bias: true kernel_initializer { he { } } } }");
  EXPECT_EQ(
      Defaulted("model { layer { conv2d { kernel: 3 } } }").model().ShortDebugString(),
      "layer { conv2d { kernel: 3 strides: 1 kernel_initializer { glorot { } } bias_initializer { zeros { } } } }");
  EXPECT_EQ(Defaulted("model { layer { max_pool { window: [2, 3] } } }").model().ShortDebugString(),
            "layer { max_pool { window: 2 window: 3 strides: 2 strides: 3 } }");
  EXPECT_EQ(Defaulted("model { layer { average_pool { window: 2 strides: 1 } } }").model().ShortDebugString(),
            "layer { average_pool { window: 2 strides: 1 } }");
  EXPECT_EQ(Defaulted("model { layer { batch_norm {} } layer { layer_norm {} } }").model().ShortDebugString(),
            "layer { batch_norm { decay: 0.99 epsilon: 0.001 } } layer { layer_norm { epsilon: 1e-05 } }");
  EXPECT_EQ(Defaulted("model { layer { embedding {} } layer { activation { kind: LEAKY_RELU } } }")
                .model()
                .ShortDebugString(),
            "layer { embedding { initializer { uniform { min: -0.05 max: 0.05 } } } } "
            "layer { activation { kind: LEAKY_RELU slope: 0.2 } }");
  EXPECT_EQ(Defaulted("model { layer { activation { kind: TANH } } loss { huber {} } }").model().ShortDebugString(),
            "layer { activation { kind: TANH } } loss { huber { delta: 1 } weight: 1 }");
}

TEST(DefaultsTest, OptimizersGetTheirNumbers) {
  const std::pair<const char*, const char*> cases[] = {
      {"sgd {}", "sgd { }"},
      {"momentum {}", "momentum { momentum: 0.9 }"},
      {"momentum { momentum: 0 }", "momentum { momentum: 0 }"},
      {"adam {}", "adam { beta1: 0.9 beta2: 0.999 epsilon: 1e-08 }"},
      {"adagrad {}", "adagrad { initial_accumulator: 0.1 }"},
      {"rmsprop {}", "rmsprop { decay: 0.9 epsilon: 1e-10 }"},
      {"adadelta {}", "adadelta { rho: 0.95 epsilon: 1e-08 }"},
      {"ftrl {}", "ftrl { learning_rate_power: -0.5 initial_accumulator: 0.1 }"},
      {"proximal_sgd {}", "proximal_sgd { }"},
      {"proximal_adagrad {}", "proximal_adagrad { initial_accumulator: 0.1 }"},
      {"adagrad_da {}", "adagrad_da { initial_accumulator: 0.1 }"},
      {"nadam {}", "nadam { beta1: 0.9 beta2: 0.999 epsilon: 1e-08 momentum_decay: 0.004 }"},
      {"lion {}", "lion { beta1: 0.9 beta2: 0.99 }"},
      {"group { optimizer { lion {} } }", "group { optimizer { lion { beta1: 0.9 beta2: 0.99 } } }"},
      {"learning_rate { polynomial {} }", "learning_rate { polynomial { power: 1 } }"},
      {"learning_rate { cosine_restarts {} }", "learning_rate { cosine_restarts { t_mul: 2 m_mul: 1 } }"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Defaulted("optimizer { " + std::string(text) + " }").optimizer().ShortDebugString(), expected);
  }
}

TEST(DefaultsTest, InputGetsItsNumbers) {
  EXPECT_EQ(Defaulted("input { split { name: 'a' csv {} } split { synthetic {} } normalization { mean: 2 } }")
                .input()
                .ShortDebugString(),
            "split { name: \"a\" csv { separator: \",\" } } split { synthetic { noise: 1 } } "
            "normalization { mean: 2 stddev: 1 }");
}

TEST(DefaultsTest, TheTestSplitIsEvaluatedIfPresent) {
  EXPECT_EQ(Defaulted("input { split { name: 'test' } }").evaluation().split(), "test");
  EXPECT_EQ(Defaulted("input { split { name: 'train' } }").evaluation().split(), "");
  EXPECT_EQ(Defaulted("input { split { name: 'test' } } evaluation { split: 'dev' }").evaluation().split(), "dev");
}

TEST(DefaultsTest, WhatIsSetStays) {
  const char* text =
      "training { replicas_to_aggregate: 4 } checkpoint { every_seconds: 0 keep: 0 stop_seconds: 0 } "
      "summary { every_steps: 0 } "
      "cluster { lease_seconds: 1 chief_wait_seconds: 0 compute_threads: 2 shared_memory: false }";
  EXPECT_EQ(Defaulted(text).ShortDebugString(), Parse(text).ShortDebugString());
}

TEST(DefaultsTest, IsIdempotent) {
  config::v1::RunSpec once = Defaulted("model { layer { conv2d { kernel: 3 } } } optimizer { adam {} }");
  config::v1::RunSpec twice = once;
  ApplyDefaults(&twice);
  EXPECT_EQ(once.ShortDebugString(), twice.ShortDebugString());
}

}  // namespace
}  // namespace lockstep
