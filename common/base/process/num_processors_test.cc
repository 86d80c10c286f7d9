#include "lockstep/common/base/process/num_processors.h"

#include <sched.h>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(NumProcessorsTest, CountsUsableProcessors) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(NumProcessors(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(NumProcessors(), 1);
}

}  // namespace
}  // namespace lockstep
