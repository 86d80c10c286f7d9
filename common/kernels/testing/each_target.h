#ifndef LOCKSTEP_COMMON_KERNELS_TESTING_EACH_TARGET_H_
#define LOCKSTEP_COMMON_KERNELS_TESTING_EACH_TARGET_H_

#include "gtest/gtest.h"
#include "lockstep/common/kernels/target.h"

namespace lockstep {

// Calls body() once for each target of this machine, with the kernels on it; stops at the first fatal failure.
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

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_KERNELS_TESTING_EACH_TARGET_H_
