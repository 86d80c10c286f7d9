#include "lockstep/common/base/process/process_usage.h"

#include <fstream>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ProcessUsageTest, CountsWhatThisProcessUses) {
  const ProcessUsage before = ReadProcessUsage();
  EXPECT_GT(before.resident_bytes, 1 << 20);
  const std::ifstream file("/proc/self/statm");
  const ProcessUsage after = ReadProcessUsage();
  EXPECT_EQ(after.open_files, before.open_files + 1);
  EXPECT_GE(after.processor_time, before.processor_time);
}

}  // namespace
}  // namespace lockstep
