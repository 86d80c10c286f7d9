#include "lockstep/server/ps/memory_limit.h"

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

constexpr uint64_t kMachine = uint64_t{16} << 30;

class MemoryLimitTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(fs_.CreateDirectory(std::string(Dirname(path))).ok());
    ASSERT_TRUE(WriteFileAtomically(&fs_, path, text).ok());
  }

  // Expects FindMemoryLimit to return this limit with this source.
  void Expect(uint64_t bytes, const std::string& source) {
    const MemoryLimit limit = FindMemoryLimit(&fs_, kMachine);
    EXPECT_EQ(limit.bytes, bytes);
    EXPECT_EQ(limit.source, source);
  }

  MemoryFileSystem fs_;
};

TEST_F(MemoryLimitTest, WithoutControlGroupsItIsTheMachines) {
  Expect(kMachine, "the machine");
  Write("/proc/self/cgroup", "");
  Expect(kMachine, "the machine");
}

TEST_F(MemoryLimitTest, OfAGroupOfVersion2) {
  Write("/proc/self/cgroup", "0::/system.slice/chief.service\n");
  Write("/sys/fs/cgroup/system.slice/chief.service/memory.max", "1073741824\n");
  Expect(1 << 30, "/sys/fs/cgroup/system.slice/chief.service/memory.max");
  Write("/sys/fs/cgroup/system.slice/chief.service/memory.max", "max\n");
  Expect(kMachine, "the machine");
}

TEST_F(MemoryLimitTest, IsTheLeastOfNestedGroups) {
  Write("/proc/self/cgroup", "0::/kubepods/pod1/container2\n");
  Write("/sys/fs/cgroup/kubepods/pod1/container2/memory.max", "max\n");
  Write("/sys/fs/cgroup/kubepods/pod1/memory.max", "3000000\n");
  Write("/sys/fs/cgroup/kubepods/memory.max", "4000000\n");
  Expect(3000000, "/sys/fs/cgroup/kubepods/pod1/memory.max");
  Write("/sys/fs/cgroup/kubepods/memory.max", "2000000\n");
  Expect(2000000, "/sys/fs/cgroup/kubepods/memory.max");
  // The limits of other processes' groups do not apply.
  Write("/sys/fs/cgroup/kubepods/pod1/container3/memory.max", "1000\n");
  Expect(2000000, "/sys/fs/cgroup/kubepods/memory.max");
}

TEST_F(MemoryLimitTest, InAContainerTheGroupIsTheRoot) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "5000000\n");
  Expect(5000000, "/sys/fs/cgroup/memory.max");
}

TEST_F(MemoryLimitTest, OfAGroupOfVersion1) {
  Write("/proc/self/cgroup", "12:cpu,cpuacct:/docker/ab\n5:hugetlb,memory:/docker/ab\n0::/init\n");
  Write("/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "6000000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Expect(6000000, "/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes");
}

// Only the container's own group is mounted, so the process's path on the host does not exist.
TEST_F(MemoryLimitTest, OfAVersion1GroupWithAnUnseenPath) {
  Write("/proc/self/cgroup", "5:memory:/docker/ab\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n");
  Expect(7000000, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

TEST_F(MemoryLimitTest, InvalidFilesLimitNothing) {
  for (const char* membership : {"nonsense", "0::", "0::relative", "0::/../../outside", ":::", "5:memory"}) {
    Write("/proc/self/cgroup", membership);
    Expect(kMachine, "the machine");
  }
  Write("/proc/self/cgroup", "0::/a\n");
  for (const char* text : {"", "-1\n", "1e9\n", "99999999999999999999999\n"}) {
    Write("/sys/fs/cgroup/a/memory.max", text);
    Expect(kMachine, "the machine");
  }
}

TEST_F(MemoryLimitTest, OfThisMachine) {
  const MemoryLimit limit = FindMemoryLimit(FileSystem::Real(), PhysicalMemory());
  EXPECT_GT(limit.bytes, 0u);
  EXPECT_LE(limit.bytes, PhysicalMemory());
}

}  // namespace
}  // namespace lockstep
