// Tests how options for gradients and losses affect the weights. One step of gradient descent with learning rate 1
// changes the weights by exactly the gradient.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

constexpr char kConfig[] = R"(
  model {
    layer {
      name: "a"
      dense { units: 4 activation: TANH }
    }
    layer {
      name: "y"
      dense { units: 3 bias_initializer { constant { value: 0.25 } } }
    }
    loss { softmax_cross_entropy {} }
  }
  input { split { name: "train" synthetic { examples: 32 shape: 6 classes: 3 } } batch_size: 16 no_shuffle: true }
  optimizer { sgd {} learning_rate { initial: 1 } }
  training { steps: 1 replicas_to_aggregate: 2 seed: 3 })";

using Variables = std::map<std::string, std::vector<float>>;

// Returns kConfig merged with `more`.
config::v1::RunSpec Config(const std::string& more) {
  config::v1::RunSpec config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kConfig, &config));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(more, &config)) << more;
  return config;
}

// Returns the variables after the last step.
Variables Train(config::v1::RunSpec config) {
  ApplyDefaults(&config);
  TestCluster::Options options;
  options.config = config;
  options.local = true;
  TestCluster cluster(options);
  EXPECT_EQ(cluster.StartChief(), absl::OkStatus());
  cluster.StartWorker();
  EXPECT_EQ(cluster.Wait(), absl::OkStatus());
  const auto newest = LatestCheckpoint(cluster.fs(), TestCluster::kLogdir).value();
  const auto reader = BundleReader::Open(cluster.fs(), newest.value_or("none"));
  EXPECT_TRUE(reader.ok()) << reader.status();
  Variables variables;
  for (const char* name : {"a/kernel", "a/bias", "y/kernel", "y/bias"}) {
    const auto tensor = (*reader)->Read(name);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    const auto values = tensor->flat<float>();
    variables[name].assign(values.begin(), values.end());
  }
  return variables;
}

// Returns the variables before the first step, obtained with a step that is too small to change them.
Variables Initial(config::v1::RunSpec config) {
  config.mutable_optimizer()->mutable_learning_rate()->set_initial(1e-30f);
  return Train(config);
}

// Returns the gradient, i.e. the decrease of the variables in one step.
Variables GradientOf(const config::v1::RunSpec& config) {
  Variables before = Initial(config);
  for (auto& [name, values] : Train(config)) {
    for (size_t i = 0; i < values.size(); ++i) before[name][i] -= values[i];
  }
  return before;
}

Variables GradientOf(const std::string& more) { return GradientOf(Config(more)); }

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Returns left + factor * right.
Variables Plus(Variables left, double factor, const Variables& right) {
  for (auto& [name, values] : left) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(factor * right.at(name)[i]);
  }
  return left;
}

void ExpectNear(const Variables& is, const Variables& expected, double tolerance = 2e-6) {
  for (const auto& [name, values] : expected) {
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(is.at(name)[i], values[i], tolerance) << name << " " << i;
  }
}

constexpr char kOneSlot[] = "training { replicas_to_aggregate: 1 }";

std::string OneSlot(const std::string& more) { return absl::StrCat(kOneSlot, " ", more); }

TEST(TrainingOptionsTest, ClipByValue) {
  const Variables plain = GradientOf(OneSlot(""));
  Variables expected = plain;
  int clipped = 0;
  for (auto& [name, values] : expected) {
    for (float& value : values) {
      clipped += std::abs(value) > 0.02f;
      value = std::min(0.02f, std::max(-0.02f, value));
    }
  }
  EXPECT_GT(clipped, 5);
  ExpectNear(GradientOf(OneSlot("optimizer { clip { by_value: 0.02 } }")), expected);
}

TEST(TrainingOptionsTest, ClipEachVariableByItsNorm) {
  const Variables plain = GradientOf(OneSlot(""));
  const Variables clipped = GradientOf(OneSlot("optimizer { clip { by_norm: 0.03 } }"));
  for (const auto& [name, values] : plain) {
    EXPECT_NEAR(Norm(clipped.at(name)), std::min(Norm(values), 0.03), 1e-6) << name;
  }
  EXPECT_GT(Norm(plain.at("a/kernel")), 0.03);
}

TEST(TrainingOptionsTest, ClipAllByTheirGlobalNorm) {
  const Variables plain = GradientOf(OneSlot(""));
  double sum = 0;
  for (const auto& [name, values] : plain) sum += Norm(values) * Norm(values);
  Variables expected = plain;
  for (auto& [name, values] : expected) {
    for (float& value : values) value *= static_cast<float>(0.05 / std::sqrt(sum));
  }
  EXPECT_GT(sum, 0.05 * 0.05);
  ExpectNear(GradientOf(OneSlot("optimizer { clip { by_global_norm: 0.05 } }")), expected);
}

TEST(TrainingOptionsTest, ClipTheGradientOfEachSlot) {
  // The gradients of the two slots are each clipped to norm 0.05, so their mean has a smaller norm. Clipping the mean
  // would leave a norm of exactly 0.05.
  const Variables clipped = GradientOf("optimizer { clip { by_global_norm: 0.05 } }");
  double sum = 0;
  for (const auto& [name, values] : clipped) sum += Norm(values) * Norm(values);
  EXPECT_LT(std::sqrt(sum), 0.0499);
  EXPECT_GT(std::sqrt(sum), 0.01);
}

TEST(TrainingOptionsTest, MultiplyMatchingGradients) {
  Variables expected = GradientOf("");
  for (float& value : expected["a/kernel"]) value = 0;
  for (float& value : expected["a/bias"]) value = 0;
  for (float& value : expected["y/bias"]) value *= 3;
  ExpectNear(GradientOf("optimizer { multipliers { variables: '^a/' factor: 0 } "
                        "multipliers { variables: 'y/bias' factor: 3 } }"),
             expected);
}

TEST(TrainingOptionsTest, RegularizeTheVariablesThatMatch) {
  const Variables plain = GradientOf("");
  const Variables initial = Initial(Config(""));
  const std::vector<float>& kernel = initial.at("y/kernel");
  Variables expected = plain;
  for (size_t i = 0; i < kernel.size(); ++i) expected["y/kernel"][i] += 0.1f * kernel[i];
  ExpectNear(GradientOf("model { regularizer { variables: 'y/kernel' l2: 0.1 } }"), expected);
  expected = plain;
  for (size_t i = 0; i < kernel.size(); ++i) expected["y/kernel"][i] += kernel[i] > 0 ? 0.2f : -0.2f;
  for (float& value : expected["y/bias"]) value += 0.2f + 0.3f * 0.25f;
  ExpectNear(
      GradientOf("model { regularizer { variables: '^y' l1: 0.2 } regularizer { variables: 'y/bias' l2: 0.3 } }"),
      expected);
}

TEST(TrainingOptionsTest, AddSeveralLosses) {
  config::v1::RunSpec both =
      Config("model { loss { mean_squared_error {} weight: 0.5 } loss { input: 'y' hinge {} } }");
  const auto alone = [&](int loss) {
    config::v1::RunSpec config = both;
    config.mutable_model()->clear_loss();
    *config.mutable_model()->add_loss() = both.model().loss(loss);
    return GradientOf(config);
  };
  ExpectNear(GradientOf(both), Plus(Plus(alone(0), 1, alone(1)), 1, alone(2)), 1e-5);
}

// Returns CSV examples with six features, a label and a weight, drawn from a separate generator.
std::string WeightedCsv(const std::string& name, const std::vector<float>& weights, int wrong_label = -1) {
  std::string text;
  uint32_t state = 1;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (int f = 0; f < 6; ++f) {
      state = state * 1664525 + 1013904223;
      absl::StrAppend(&text, static_cast<double>(state >> 16) / 32768 - 1, ",");
    }
    const int label = static_cast<int>(i) == wrong_label ? 2 - i % 3 : i % 3;
    absl::StrAppend(&text, label, ",", weights[i], "\n");
  }
  const std::string path = JoinPath(getenv("TEST_TMPDIR"), name);
  EXPECT_EQ(WriteFileAtomically(FileSystem::Real(), path, text), absl::OkStatus());
  std::string columns;
  for (int f = 0; f < 6; ++f) absl::StrAppend(&columns, "column { name: 'f", f, "' } ");
  return absl::StrCat("csv { file: '", path, "' no_header: true ", columns,
                      "column { name: 'l' type: LABEL } column { name: 'w' type: WEIGHT } }");
}

Variables GradientOfCsv(const std::string& csv) {
  config::v1::RunSpec config = Config(kOneSlot);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(csv, config.mutable_input()->mutable_split(0)));
  config.mutable_input()->set_batch_size(6);
  return GradientOf(config);
}

TEST(TrainingOptionsTest, WeighExamples) {
  const Variables ones = GradientOfCsv(WeightedCsv("ones", {1, 1, 1, 1, 1, 1}));
  ExpectNear(GradientOfCsv(WeightedCsv("twos", {2, 2, 2, 2, 2, 2})), Plus(ones, 1, ones));
  const Variables last_ignored = GradientOfCsv(WeightedCsv("five", {1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(GradientOfCsv(WeightedCsv("wrong", {1, 1, 1, 1, 1, 0}, 5)), last_ignored);
  EXPECT_NE(GradientOfCsv(WeightedCsv("heard", {1, 1, 1, 1, 1, 1}, 5)), ones);
  // The mean is over the examples with a nonzero weight: 6 * ones = 5 * last_ignored + the gradient of the last
  // example.
  const Variables last_alone = GradientOfCsv(WeightedCsv("last", {0, 0, 0, 0, 0, 1}));
  ExpectNear(Plus(Plus(ones, 5, ones), -5, last_ignored), last_alone, 1e-5);
}

TEST(TrainingOptionsTest, LeaveTheBitsToTheConfigurationAlone) {
  std::string digests[2];
  for (const int workers : {1, 3}) {
    TestCluster::Options options;
    options.config = Config(
        "training { steps: 40 replicas_to_aggregate: 4 } "
        "optimizer { clip { by_value: 0.05 by_norm: 0.1 by_global_norm: 0.2 } multipliers { variables: 'a' factor: 2 } "
        "learning_rate { initial: 0.1 } } model { regularizer { variables: 'kernel' l1: 0.001 l2: 0.01 } }");
    ApplyDefaults(&options.config);
    const auto digest = TrainAndDigest(options, workers);
    ASSERT_TRUE(digest.ok()) << digest.status();
    digests[workers / 2] = *digest;
  }
  EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace lockstep
