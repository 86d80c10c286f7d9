#include "lockstep/server/optimizer/optimizer.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::v1::OptimizerConfig Config(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::unique_ptr<Optimizer> Make(const std::string& text) {
  auto optimizer = Optimizer::Create(Config(text));
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// A variable and its slots. An optimizer is applied to it in place.
struct State {
  State(const Optimizer& optimizer, std::vector<float> initial) : value(std::move(initial)) {
    for (const auto& slot : optimizer.state()) slots.emplace_back(value.size(), slot.initial_value);
  }

  void Apply(const Optimizer& optimizer, const std::vector<float>& gradient, float divisor) {
    std::vector<const float*> in;
    std::vector<float*> out;
    for (auto& slot : slots) {
      in.push_back(slot.data());
      out.push_back(slot.data());
    }
    optimizer.Apply(value.size(), gradient.data(), divisor, value.data(), value.data(), in, out);
  }

  std::vector<float> value;
  std::vector<std::vector<float>> slots;
};

// A "case" of tests/golden/optimizers_golden.txt.
struct Case {
  std::string config;
  std::vector<std::vector<float>> values;
  std::map<std::string, std::vector<float>> slots;
  std::map<std::string, float> scalars;
};

// Gradients and results of other programs' optimizers, from a file in tests/golden.
struct Golden {
  std::vector<std::vector<float>> gradients;
  std::vector<float> initial;
  std::vector<Case> cases;
};

std::vector<float> Floats(absl::Span<const absl::string_view> words) {
  std::vector<float> floats;
  for (const absl::string_view word : words) {
    uint32_t bits = 0;
    EXPECT_TRUE(absl::SimpleHexAtoi(word, &bits)) << word;
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    floats.push_back(x);
  }
  return floats;
}

Golden ReadGolden(const std::string& name) {
  Golden golden;
  std::ifstream file("tests/golden/" + name);
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const auto rest = [&](size_t from) { return Floats(absl::MakeSpan(words).subspan(from)); };
    if (words[0] == "gradient") golden.gradients.push_back(rest(2));
    if (words[0] == "initial") golden.initial = rest(1);
    if (words[0] == "case") golden.cases.push_back({line.substr(5), {}, {}, {}});
    if (words[0] == "value") golden.cases.back().values.push_back(rest(2));
    if (words[0] == "slot") golden.cases.back().slots[std::string(words[1])] = rest(2);
    if (words[0] == "scalar") golden.cases.back().scalars[std::string(words[1])] = rest(2)[0];
  }
  return golden;
}

// Returns false for rules that agree only approximately: TensorFlow approximates rsqrt and pow, and Keras's Lion rounds
// in different places.
bool IsBitEqual(const config::v1::OptimizerConfig& config) {
  return !config.has_adagrad() && !config.has_adadelta() && !config.has_proximal_adagrad() && !config.has_lion() &&
         !(config.has_ftrl() && config.ftrl().has_learning_rate_power());
}

// `tolerance` is relative to the larger of 1 and the expected number; 0 requires equal bits.
void ExpectSame(const std::vector<float>& ours, const std::vector<float>& theirs, double tolerance,
                const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (tolerance == 0 && (ours[i] != 0 || theirs[i] != 0)) {  // zeros may have different signs
      EXPECT_EQ(Bits(ours[i]), Bits(theirs[i])) << what << " element " << i << ": " << ours[i] << ", " << theirs[i];
    } else {
      EXPECT_NEAR(ours[i], theirs[i], tolerance * std::max(1.0f, std::abs(theirs[i]))) << what << " element " << i;
    }
  }
}

TEST(OptimizerTest, EqualsTensorFlowOverTwentySteps) {
  const Golden golden = ReadGolden("optimizers_golden.txt");
  ASSERT_EQ(golden.cases.size(), 27);
  ASSERT_EQ(golden.gradients.size(), 20);
  for (const Case& expected : golden.cases) {
    SCOPED_TRACE(expected.config);
    const config::v1::OptimizerConfig config = Config(expected.config);
    const double tolerance = IsBitEqual(config) ? 0 : 1e-6;
    auto optimizer = Make(expected.config);
    State state(*optimizer, golden.initial);
    for (size_t step = 0; step < golden.gradients.size(); ++step) {
      optimizer->BeginStep(config.learning_rate().initial());
      optimizer->SetGlobalStep(static_cast<int64_t>(step) + 1);
      state.Apply(*optimizer, golden.gradients[step], 1.0f);
      optimizer->EndStep();
      ExpectSame(state.value, expected.values[step], tolerance, absl::StrCat("value after step ", step));
    }
    ASSERT_EQ(optimizer->state().size(), expected.slots.size());
    for (size_t k = 0; k < state.slots.size(); ++k) {
      const std::string& name = optimizer->state()[k].name;
      ASSERT_EQ(expected.slots.count(name), 1) << name;
      ExpectSame(state.slots[k], expected.slots.at(name), tolerance, name);
    }
    ASSERT_EQ(optimizer->scalars().size(), expected.scalars.size());
    for (const OptimizerScalar& scalar : optimizer->scalars()) {
      ASSERT_EQ(expected.scalars.count(scalar.name), 1) << scalar.name;
      EXPECT_EQ(Bits(scalar.value), Bits(expected.scalars.at(scalar.name))) << scalar.name;
    }
  }
}

TEST(OptimizerTest, AgreesWithPyTorchOverTwentySteps) {
  const Golden golden = ReadGolden("torch_optimizers_golden.txt");
  ASSERT_EQ(golden.cases.size(), 14);
  ASSERT_EQ(golden.gradients.size(), 20);
  for (const Case& expected : golden.cases) {
    SCOPED_TRACE(expected.config);
    auto optimizer = Make(expected.config);
    State state(*optimizer, golden.initial);
    for (size_t step = 0; step < golden.gradients.size(); ++step) {
      optimizer->BeginStep(Config(expected.config).learning_rate().initial());
      optimizer->SetGlobalStep(static_cast<int64_t>(step) + 1);
      state.Apply(*optimizer, golden.gradients[step], 1.0f);
      optimizer->EndStep();
      ExpectSame(state.value, expected.values[step], 1e-6, absl::StrCat("value after step ", step));
    }
    for (size_t k = 0; k < state.slots.size(); ++k) {
      const std::string& name = optimizer->state()[k].name;
      ASSERT_EQ(expected.slots.count(name), 1) << name;
      // Not exact, because PyTorch subtracts decays from 1 in double.
      ExpectSame(state.slots[k], expected.slots.at(name), 2e-5, name);
    }
  }
}

const char* const kEveryRule[] = {
    "sgd {}",
    "momentum {}",
    "momentum { nesterov: true }",
    "adam {}",
    "adam { weight_decay: 0.01 }",
    "adagrad {}",
    "rmsprop { momentum: 0.5 }",
    "rmsprop { momentum: 0.5 centered: true }",
    "adadelta {}",
    "ftrl { l1: 0.1 l2: 0.01 }",
    "ftrl { learning_rate_power: -0.3 l1: 0.1 }",
    "sgd { weight_decay: 0.01 }",
    "momentum { weight_decay: 0.01 dampening: 0.2 }",
    "adam { epsilon_on_corrected: true }",
    "adam { amsgrad: true }",
    "proximal_sgd { l1: 0.1 l2: 0.01 }",
    "proximal_adagrad { l1: 0.1 l2: 0.01 }",
    "adagrad_da { l1: 0.1 l2: 0.01 }",
    "nadam { weight_decay: 0.01 }",
    "lion { weight_decay: 0.01 }",
};

// A random variable, gradient and slots, as in the middle of training.
struct Problem {
  explicit Problem(size_t n, size_t slot_count) : gradient(n), value(n), slots(slot_count, std::vector<float>(n)) {
    Philox(1, 1).FillNormal(absl::MakeSpan(gradient));
    Philox(1, 2).FillNormal(absl::MakeSpan(value));
    for (size_t k = 0; k < slots.size(); ++k) {
      Philox(1, 3 + k).FillUniform(absl::MakeSpan(slots[k]));
      // Keeps RMSProp's ms - mg * mg positive.
      for (float& x : slots[k]) x = k == 0 ? 1 + x : 0.5f * x;
    }
  }
  std::vector<float> gradient;
  std::vector<float> value;
  std::vector<std::vector<float>> slots;
};

// A copy whose first element is `shift` floats past an aligned address.
class Shifted {
 public:
  Shifted(const std::vector<float>& values, size_t shift) : memory_(values.size() + 32), shift_(shift) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(memory_.data()) % 64 / sizeof(float);
    shift_ += misaligned == 0 ? 0 : 16 - misaligned;
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return memory_.data() + shift_; }

 private:
  std::vector<float> memory_;
  size_t shift_;
};

// The destination of the new value and slots.
enum class Place { kElsewhere, kInPlace, kOverTheGradient };

// Applies the rule to [0, n) in pieces of at most `piece` elements and returns the value followed by the slots.
std::vector<float> ApplyInPieces(const Optimizer& optimizer, const Problem& problem, size_t piece, size_t shift,
                                 Place place) {
  const size_t n = problem.value.size();
  Shifted gradient(problem.gradient, shift % 16);
  std::vector<Shifted> in, out;
  for (size_t k = 0; k <= problem.slots.size(); ++k) {
    const std::vector<float>& values = k == 0 ? problem.value : problem.slots[k - 1];
    in.emplace_back(values, (shift + k) % 16);
    out.emplace_back(std::vector<float>(n), (shift + 3 * k) % 16);
  }
  std::vector<Shifted>& target = place == Place::kInPlace ? in : out;
  float* const value = place == Place::kOverTheGradient ? gradient.data() : target[0].data();
  for (size_t begin = 0; begin < n; begin += piece) {
    std::vector<const float*> state_in;
    std::vector<float*> state_out;
    for (size_t k = 1; k <= problem.slots.size(); ++k) {
      state_in.push_back(in[k].data() + begin);
      state_out.push_back(target[k].data() + begin);
    }
    optimizer.Apply(std::min(piece, n - begin), gradient.data() + begin, 3.0f, in[0].data() + begin, value + begin,
                    state_in, state_out);
  }
  std::vector<float> result(value, value + n);
  for (size_t k = 1; k < target.size(); ++k) result.insert(result.end(), target[k].data(), target[k].data() + n);
  return result;
}

TEST(OptimizerTest, BitsDoNotDependOnSplitOrAlignment) {
  for (const char* rule : kEveryRule) {
    SCOPED_TRACE(rule);
    auto optimizer = Make(rule);
    optimizer->BeginStep(0.07f);
    const Problem problem(1003, optimizer->state().size());
    // With one element at a time, no vector instructions are used.
    const std::vector<float> expected = ApplyInPieces(*optimizer, problem, 1, 0, Place::kElsewhere);
    for (const size_t piece : {1003, 1, 7, 8, 13, 64, 500}) {
      for (size_t shift = 0; shift < 16; shift += 3) {
        for (const Place place : {Place::kElsewhere, Place::kInPlace, Place::kOverTheGradient}) {
          const std::vector<float> actual = ApplyInPieces(*optimizer, problem, piece, shift, place);
          ASSERT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)), 0)
              << "piece " << piece << " shift " << shift << " place " << static_cast<int>(place);
        }
      }
    }
  }
}

TEST(OptimizerTest, DividesTheSumOfGradientsByTheDivisor) {
  for (const char* rule : kEveryRule) {
    SCOPED_TRACE(rule);
    auto optimizer = Make(rule);
    optimizer->BeginStep(0.1f);
    State sum(*optimizer, {1, 2, 3});
    State mean(*optimizer, {1, 2, 3});
    sum.Apply(*optimizer, {4, -8, 20}, 4);
    mean.Apply(*optimizer, {1, -2, 5}, 1);
    EXPECT_EQ(sum.value, mean.value);
    EXPECT_EQ(sum.slots, mean.slots);
  }
}

TEST(OptimizerTest, SgdGivesTheWorkedNumbers) {
  auto optimizer = Make("sgd {}");
  optimizer->BeginStep(2.0f);
  State state(*optimizer, {0.0f, 1.0f});
  state.Apply(*optimizer, {0.1f + 0.3f, 0.9f + 1.1f}, 2);
  EXPECT_THAT(state.value, ElementsAre(-0.4f, -1.0f));
}

TEST(OptimizerTest, NoElementsIsNoWork) {
  auto optimizer = Make("sgd {}");
  optimizer->BeginStep(1.0f);
  optimizer->Apply(0, nullptr, 1, nullptr, nullptr, {}, {});
}

TEST(OptimizerTest, RulesContinueFromRestoredScalars) {
  for (const char* rule : kEveryRule) {
    SCOPED_TRACE(rule);
    auto whole = Make(rule);
    State expected(*whole, {1, 2, 3});
    auto first = Make(rule);
    State state(*first, {1, 2, 3});
    for (int step = 0; step < 5; ++step) {
      for (auto& [optimizer, variable] : {std::make_pair(&whole, &expected), std::make_pair(&first, &state)}) {
        (*optimizer)->BeginStep(0.1f);
        (*optimizer)->SetGlobalStep(step + 1);
        variable->Apply(**optimizer, {0.1f * step, 1, -1}, 1);
        (*optimizer)->EndStep();
      }
      // Restarts after every step.
      auto next = Make(rule);
      std::vector<OptimizerScalar> scalars = first->scalars();
      scalars.push_back({"some_other", 7});
      next->RestoreScalars(scalars);
      first = std::move(next);
    }
    EXPECT_EQ(state.value, expected.value);
  }
}

TEST(OptimizerTest, AmsgradKeepsTheLargestMoment) {
  auto optimizer = Make("adam { amsgrad: true beta2: 0.5 }");
  State state(*optimizer, {0, 0});
  for (const float gradient : {4.0f, 0.0f}) {
    optimizer->BeginStep(0.1f);
    state.Apply(*optimizer, {gradient, 0}, 1);
    optimizer->EndStep();
  }
  EXPECT_THAT(state.slots[1], ElementsAre(4, 0));
  EXPECT_THAT(state.slots[2], ElementsAre(8, 0));
}

TEST(OptimizerTest, DampeningSparesTheFirstUpdate) {
  auto optimizer = Make("momentum { momentum: 0.5 dampening: 0.75 }");
  State state(*optimizer, {0});
  for (const int64_t step : {1, 2}) {
    optimizer->BeginStep(1);
    optimizer->SetGlobalStep(step);
    state.Apply(*optimizer, {4}, 1);
  }
  EXPECT_THAT(state.slots[0], ElementsAre(4 * 0.5f + 4 * 0.25f));
}

TEST(OptimizerTest, AdagradDaReplacesTheInitialValue) {
  auto optimizer = Make("adagrad_da { initial_accumulator: 3 l1: 0.25 }");
  State state(*optimizer, {7, 7});
  optimizer->BeginStep(1);
  optimizer->SetGlobalStep(2);
  state.Apply(*optimizer, {-1, 0.5f}, 1);
  EXPECT_THAT(state.value, ElementsAre(0.25f, 0)) << "l1 limits the second sum at step 2";
}

TEST(OptimizerTest, AdamStepIsIncompleteUntilEndStep) {
  auto optimizer = Make("adam {}");
  optimizer->BeginStep(0.1f);
  EXPECT_EQ(optimizer->scalars()[0].value, 0.9f);
  optimizer->EndStep();
  EXPECT_EQ(optimizer->scalars()[0].value, 0.9f * 0.9f);
  EXPECT_EQ(optimizer->scalars()[1].value, 0.999f * 0.999f);
}

TEST(OptimizerTest, AdamWShrinksWithoutGradient) {
  auto optimizer = Make("adam { weight_decay: 0.5 }");
  optimizer->BeginStep(0.5f);
  State state(*optimizer, {1, -2});
  state.Apply(*optimizer, {0, 0}, 1);
  EXPECT_THAT(state.value, ElementsAre(0.75f, -1.5f));
}

TEST(OptimizerTest, FtrlAtRateZeroChangesNothing) {
  auto optimizer = Make("ftrl { initial_accumulator: 0.25 l1: 0.1 }");
  optimizer->BeginStep(0.0f);
  State state(*optimizer, {1, 2});
  state.Apply(*optimizer, {1, 0}, 1);
  EXPECT_THAT(state.value, ElementsAre(1, 2));
  EXPECT_THAT(state.slots[0], ElementsAre(0.25f, 0.25f));
  EXPECT_THAT(state.slots[1], ElementsAre(0, 0));
}

TEST(OptimizerTest, FtrlWithStrongL1GivesZeros) {
  auto optimizer = Make("ftrl { l1: 100 }");
  optimizer->BeginStep(0.1f);
  State state(*optimizer, {1, -2, 0});
  state.Apply(*optimizer, {1, 0.5f, -1}, 1);
  EXPECT_THAT(state.value, ElementsAre(0, 0, 0));
}

TEST(OptimizerTest, NamesTheFieldThatIsOutOfRange) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "optimizer has no kind"},
      {"momentum { momentum: 1 }", "optimizer.momentum.momentum is 1, must be in [0, 1)"},
      {"momentum { momentum: -0.1 }", "optimizer.momentum.momentum is -0.1"},
      {"momentum { momentum: nan }", "optimizer.momentum.momentum is nan"},
      {"adam { beta1: 1 }", "optimizer.adam.beta1 is 1"},
      {"adam { beta2: -1 }", "optimizer.adam.beta2 is -1"},
      {"adam { epsilon: 0 }", "optimizer.adam.epsilon is 0, must be a finite number above 0"},
      {"adam { weight_decay: -0.01 }", "optimizer.adam.weight_decay is -0.01"},
      {"adam { weight_decay: inf }", "optimizer.adam.weight_decay is inf"},
      {"adagrad { initial_accumulator: 0 }", "optimizer.adagrad.initial_accumulator is 0"},
      {"rmsprop { decay: 1.5 }", "optimizer.rmsprop.decay is 1.5"},
      {"rmsprop { momentum: 2 }", "optimizer.rmsprop.momentum is 2"},
      {"rmsprop { epsilon: -1 }", "optimizer.rmsprop.epsilon is -1"},
      {"adadelta { rho: 1 }", "optimizer.adadelta.rho is 1"},
      {"adadelta { epsilon: 0 }", "optimizer.adadelta.epsilon is 0"},
      {"ftrl { learning_rate_power: 0.5 }", "optimizer.ftrl.learning_rate_power is 0.5"},
      {"ftrl { initial_accumulator: -1 }", "optimizer.ftrl.initial_accumulator is -1"},
      {"ftrl { l1: -1 }", "optimizer.ftrl.l1 is -1"},
      {"ftrl { l2: nan }", "optimizer.ftrl.l2 is nan"},
      {"sgd { weight_decay: -1 }", "optimizer.sgd.weight_decay is -1"},
      {"momentum { weight_decay: nan }", "optimizer.momentum.weight_decay is nan"},
      {"momentum { dampening: 1 }", "optimizer.momentum.dampening is 1, must be in [0, 1)"},
      {"momentum { dampening: 0.5 nesterov: true }", "optimizer.momentum.dampening is 0.5, but nesterov is true"},
      {"proximal_sgd { l1: -1 }", "optimizer.proximal_sgd.l1 is -1"},
      {"proximal_adagrad { initial_accumulator: 0 }", "optimizer.proximal_adagrad.initial_accumulator is 0"},
      {"adagrad_da { l2: inf }", "optimizer.adagrad_da.l2 is inf"},
      {"nadam { momentum_decay: -1 }", "optimizer.nadam.momentum_decay is -1"},
      {"nadam { decoupled_weight_decay: true }", "optimizer.nadam.decoupled_weight_decay is true, but weight_decay"},
      {"lion { beta2: 1 }", "optimizer.lion.beta2 is 1"},
  };
  for (const auto& [text, message] : cases) {
    const auto optimizer = Optimizer::Create(Config(text));
    ASSERT_FALSE(optimizer.ok()) << text;
    EXPECT_EQ(optimizer.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(optimizer.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace lockstep
