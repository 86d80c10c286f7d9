#include "lockstep/common/base/process/floating_point_mode.h"

#include <xmmintrin.h>

#include <cfenv>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr unsigned kFlushesResults = 0x8000;
constexpr unsigned kFlushesOperands = 0x0040;

class FloatingPointModeTest : public ::testing::Test {
 protected:
  ~FloatingPointModeTest() override {
    std::fesetround(FE_TONEAREST);
    _mm_setcsr(before_);
  }
  void Set(unsigned bits) { _mm_setcsr(before_ | bits); }
  static std::string Message() { return std::string(CheckFloatingPointMode().message()); }

 private:
  const unsigned before_ = _mm_getcsr();
};

TEST_F(FloatingPointModeTest, AProgramStartsInTheReproducibleMode) {
  EXPECT_TRUE(CheckFloatingPointMode().ok()) << Message();
}

TEST_F(FloatingPointModeTest, PastExceptionsAreNoMode) {
  Set(0x003f);  // The flags of all exceptions.
  EXPECT_TRUE(CheckFloatingPointMode().ok()) << Message();
}

TEST_F(FloatingPointModeTest, FastMathIsANamedConfigurationError) {
  Set(kFlushesResults | kFlushesOperands);
  const absl::Status status = CheckFloatingPointMode();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(ExitCodeOf(status), kExitBadConfiguration);
  EXPECT_THAT(Message(), AllOf(HasSubstr("FTZ"), HasSubstr("DAZ"), HasSubstr("-ffast-math"), Not(HasSubstr("RC"))));
}

TEST_F(FloatingPointModeTest, EitherHalfOfItIsAnError) {
  Set(kFlushesResults);
  EXPECT_THAT(Message(), AllOf(HasSubstr("FTZ"), Not(HasSubstr("DAZ"))));
  Set(kFlushesOperands);
  EXPECT_THAT(Message(), AllOf(HasSubstr("DAZ"), Not(HasSubstr("FTZ"))));
}

TEST_F(FloatingPointModeTest, EveryOtherRoundingIsAnError) {
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(rounding);
    EXPECT_THAT(Message(), HasSubstr("results are not rounded to the nearest (RC)")) << rounding;
  }
}

// This is why a check before threads are created covers them.
TEST_F(FloatingPointModeTest, AThreadInheritsTheMode) {
  absl::Status status;
  Set(kFlushesResults);
  Executor::Threads()->Start("made", [&] { status = CheckFloatingPointMode(); })->Join();
  EXPECT_THAT(std::string(status.message()), HasSubstr("FTZ"));
}

}  // namespace
}  // namespace lockstep
