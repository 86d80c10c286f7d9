#include "lockstep/train/hooks/base/hook_state.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(HookStateTest, ValuesComeBackWithTheirBits) {
  HookState state;
  state.SetInt("step", -7);
  state.SetDouble("best", 0.1);
  state.SetDouble("none", std::nan(""));
  state.SetText("path", std::string("a:1\n\0b", 6));
  const auto parsed = HookState::Parse(state.Serialize());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  int64_t step = 0;
  double best = 0, none = 0;
  std::string path;
  EXPECT_TRUE(parsed->GetInt("step", &step).ok());
  EXPECT_TRUE(parsed->GetDouble("best", &best).ok());
  EXPECT_TRUE(parsed->GetDouble("none", &none).ok());
  EXPECT_TRUE(parsed->GetText("path", &path).ok());
  EXPECT_EQ(step, -7);
  EXPECT_EQ(best, 0.1);
  EXPECT_TRUE(std::isnan(none));
  EXPECT_EQ(path, std::string("a:1\n\0b", 6));
}

TEST(HookStateTest, AnEmptyStateIsNotAnEmptyText) { EXPECT_FALSE(HookState().Serialize().empty()); }

TEST(HookStateTest, WhatIsAbsentOrOfAnotherKindIsNamed) {
  HookState state;
  state.SetText("text", "x");
  int64_t number = 0;
  double real = 0;
  EXPECT_EQ(state.GetInt("step", &number), absl::InvalidArgumentError("the state has no step"));
  EXPECT_EQ(state.GetInt("text", &number), absl::InvalidArgumentError("the state's text is no whole number"));
  EXPECT_EQ(state.GetDouble("text", &real), absl::InvalidArgumentError("the state's text is no number"));
}

TEST(HookStateTest, OtherBytesAreRefused) {
  HookState state;
  state.SetText("name", "value");
  const std::string good = state.Serialize();
  EXPECT_FALSE(HookState::Parse("").ok());
  EXPECT_FALSE(HookState::Parse("x" + good).ok());
  EXPECT_FALSE(HookState::Parse(good + "9:").ok());
  EXPECT_FALSE(HookState::Parse(good + "18446744073709551615:a").ok());
  // A name must not occur twice.
  EXPECT_FALSE(HookState::Parse(good + "4:name\n1:x\n").ok());
  for (size_t size = 0; size + 1 < good.size(); ++size) {
    const auto parsed = HookState::Parse(good.substr(0, size));
    EXPECT_TRUE(!parsed.ok() || parsed->values().empty()) << size;
  }
}

}  // namespace
}  // namespace lockstep::train
