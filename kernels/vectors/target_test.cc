#include "lockstep/kernels/vectors/target.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/vectors/fma_peak.h"

namespace lockstep {
namespace {

const std::vector<KernelTarget> kAvx2Alone = {KernelTarget::kAvx2};

TEST(TargetTest, UsesTheFastestUnlessOneIsNamed) {
  ASSERT_FALSE(AvailableTargets().empty());
  const char* named = std::getenv("LOCKSTEP_TARGET");
  if (named == nullptr || *named == '\0') {
    EXPECT_EQ(CurrentTarget(), AvailableTargets()[0]);
  }
  EXPECT_EQ(TargetError(), "");
}

TEST(TargetTest, KernelsRunOnTheTargetThatIsSet) {
  ForEachTarget([] {
    // Twelve vectors of 8, 16 or 4 lanes.
    const KernelTarget target = CurrentTarget();
    const int64_t lanes = target == KernelTarget::kAvx512 ? 16 : target == KernelTarget::kAvx2 ? 8 : 4;
    EXPECT_EQ(RunMultiplyAdds(5), 5 * 12 * lanes);
  });
}

TEST(TargetTest, EveryAvailableTargetMayBeNamed) {
  EXPECT_EQ(TargetNameError("avx2", kAvx2Alone), "");
  EXPECT_EQ(TargetNameError("avx512", {KernelTarget::kAvx512, KernelTarget::kAvx2}), "");
  EXPECT_EQ(TargetNameError("neon", {KernelTarget::kNeon}), "");
  EXPECT_EQ(TargetNameError("", kAvx2Alone), "");
}

TEST(TargetTest, AnUnsupportedTargetIsAnError) {
  EXPECT_EQ(TargetNameError("avx512", kAvx2Alone), "LOCKSTEP_TARGET is avx512, but this processor has no AVX-512");
}

TEST(TargetTest, AProcessorWithoutTargetsIsAnError) {
  const std::string error = "this processor has none of AVX2, AVX-512 and NEON, one of which the kernels need";
  EXPECT_EQ(TargetNameError("", {}), error);
  EXPECT_EQ(TargetNameError("avx2", {}), error);
}

TEST(TargetTest, AnyOtherNameIsAnError) {
  EXPECT_EQ(TargetNameError("AVX2", kAvx2Alone),
            "LOCKSTEP_TARGET is \"AVX2\", but must be avx2, avx512, neon or empty");
}

}  // namespace
}  // namespace lockstep
