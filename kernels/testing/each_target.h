#ifndef LOCKSTEP_KERNELS_TESTING_EACH_TARGET_H_
#define LOCKSTEP_KERNELS_TESTING_EACH_TARGET_H_

#include <cstddef>
#include <cstring>

#include "gtest/gtest.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {

// Calls body() with the kernels on each of this machine's targets in turn. Stops at the first fatal failure.
template <typename Body>
void ForEachTarget(Body body) {
  const KernelTarget before = CurrentTarget();
  EXPECT_FALSE(AvailableTargets().empty());
  for (const KernelTarget target : AvailableTargets()) {
    SCOPED_TRACE(TargetName(target));
    UseTarget(target);
    body();
    if (testing::Test::HasFatalFailure()) break;
  }
  UseTarget(before);
}

// Fails unless body(), which returns a container of numbers, returns the same bits on each of this machine's targets.
template <typename Body>
void ExpectSameBitsOnEachTarget(Body body) {
  const auto expected = body();
  ForEachTarget([&] {
    const auto result = body();
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(std::memcmp(&result[i], &expected[i], sizeof(result[i])), 0)
          << "element " << i << " of " << result.size() << ": " << result[i] << " and " << expected[i];
    }
  });
}

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_TESTING_EACH_TARGET_H_
