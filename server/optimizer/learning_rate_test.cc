#include "lockstep/server/optimizer/learning_rate.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

config::v1::LearningRate Config(const std::string& text) {
  config::v1::LearningRate config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// Compares LearningRateAt with every schedule in a file in tests/golden. Adds the numbers of schedules and rates to
// `*schedules` and `*rates`.
void ExpectGolden(const std::string& name, int* schedules, int* rates) {
  std::ifstream file("tests/golden/" + name);
  config::v1::LearningRate config;
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words[0] == "schedule") {
      text = line.substr(9);
      config = Config(text);
      ++*schedules;
    } else if (words[0] == "rate") {
      int64_t step;
      uint32_t bits;
      ASSERT_TRUE(absl::SimpleAtoi(words[1], &step) && absl::SimpleHexAtoi(words[2], &bits)) << line;
      float expected;
      std::memcpy(&expected, &bits, sizeof(expected));
      // Other programs compute in float or sum differently, so the tolerance also includes 1e-6 of the largest rate,
      // 0.1.
      EXPECT_NEAR(LearningRateAt(config, step), expected, 1e-7 + 1e-6 * expected) << text << " at step " << step;
      ++*rates;
    }
  }
}

TEST(LearningRateTest, SchedulesEqualTensorFlows) {
  int schedules = 0, rates = 0;
  ExpectGolden("optimizers_golden.txt", &schedules, &rates);
  EXPECT_EQ(schedules, 13);
  EXPECT_EQ(rates, 13 * 67);
}

// Covers one-cycle, warmup-stable-decay, and a function that is sampled at each step.
TEST(LearningRateTest, TablesExpressPyTorchsSchedules) {
  int schedules = 0, rates = 0;
  ExpectGolden("torch_optimizers_golden.txt", &schedules, &rates);
  EXPECT_EQ(schedules, 3);
  EXPECT_EQ(rates, 3 * 60);
}

TEST(LearningRateTest, TablesInterpolateBetweenKnots) {
  const config::v1::LearningRate config = Config("table { steps: [2, 6, 7] rates: [1, 3, 0] }");
  EXPECT_EQ(LearningRateAt(config, 0), 1);
  EXPECT_EQ(LearningRateAt(config, 2), 1);
  EXPECT_EQ(LearningRateAt(config, 3), 1.5f);
  EXPECT_EQ(LearningRateAt(config, 6), 3);
  EXPECT_EQ(LearningRateAt(config, 7), 0);
  EXPECT_EQ(LearningRateAt(config, 1000000), 0);
  EXPECT_EQ(LearningRateAt(Config("table { steps: 0 rates: 4 } warmup_steps: 2"), 0), 2) << "warmup multiplies it";
}

TEST(LearningRateTest, IsTheInitialRateWithoutASchedule) {
  EXPECT_EQ(LearningRateAt(Config("initial: 0.1"), 0), 0.1f);
  EXPECT_EQ(LearningRateAt(Config("initial: 0.1"), 1000000), 0.1f);
}

TEST(LearningRateTest, WarmsUpLinearly) {
  const config::v1::LearningRate config = Config("initial: 0.8 warmup_steps: 4");
  EXPECT_EQ(LearningRateAt(config, 0), 0.2f);
  EXPECT_EQ(LearningRateAt(config, 1), 0.4f);
  EXPECT_EQ(LearningRateAt(config, 3), 0.8f);
  EXPECT_EQ(LearningRateAt(config, 4), 0.8f);
}

TEST(LearningRateTest, WarmupMultipliesTheSchedule) {
  const config::v1::LearningRate config =
      Config("initial: 1 warmup_steps: 2 exponential { decay_steps: 1 decay_rate: 0.5 }");
  EXPECT_EQ(LearningRateAt(config, 0), 0.5f);
  EXPECT_EQ(LearningRateAt(config, 1), 0.5f);
  EXPECT_EQ(LearningRateAt(config, 2), 0.25f);
}

TEST(LearningRateTest, PiecewiseChangesAfterTheBoundary) {
  const config::v1::LearningRate config = Config("piecewise { boundaries: [5, 7] values: [3, 2, 1] }");
  EXPECT_EQ(LearningRateAt(config, 5), 3);
  EXPECT_EQ(LearningRateAt(config, 6), 2);
  EXPECT_EQ(LearningRateAt(config, 7), 2);
  EXPECT_EQ(LearningRateAt(config, 8), 1);
}

TEST(LearningRateTest, CosineRestartsExactlyAtEveryPeriod) {
  for (const float t_mul : {1.0f, 1.1f, 1.25f, 1.5f, 2.0f, 3.0f, 10.0f}) {
    config::v1::LearningRate config = Config("initial: 1 cosine_restarts { first_decay_steps: 1000 }");
    config.mutable_cosine_restarts()->set_t_mul(t_mul);
    double start = 0, length = 1000;
    for (int period = 0; period < 6; ++period) {
      if (start == std::floor(start) && length == std::floor(length)) {
        EXPECT_EQ(LearningRateAt(config, static_cast<int64_t>(start)), 1.0f) << t_mul << " period " << period;
        EXPECT_LT(LearningRateAt(config, static_cast<int64_t>(start + length) - 1), 1e-5f) << t_mul << " " << period;
      }
      start += length;
      length *= t_mul;
    }
  }
}

}  // namespace
}  // namespace lockstep
