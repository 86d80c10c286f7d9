#include "lockstep/worker/nn/compute/workspace.h"

#include <utility>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(WorkspaceTest, KeepsItsMemoryUntilMoreIsNeeded) {
  Workspace<float> workspace;
  float* const begin = workspace.Get(100);
  begin[99] = 5;
  EXPECT_EQ(workspace.Get(1), begin);
  EXPECT_EQ(workspace.Get(0), begin);
  EXPECT_EQ(workspace.Get(100), begin);
  EXPECT_EQ(workspace.data(), begin);
  EXPECT_EQ(workspace.data()[99], 5);
}

TEST(WorkspaceTest, GrowsToTheSizeAskedFor) {
  Workspace<double> workspace;
  for (const int64_t size : {1, 7, 8, 1000, 70000}) {
    double* const begin = workspace.Get(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % kTensorAlignment, 0u);
    for (int64_t i = 0; i < size; ++i) begin[i] = static_cast<double>(i);
    EXPECT_EQ(workspace.Get(size)[size - 1], static_cast<double>(size - 1));
  }
}

TEST(WorkspaceTest, NoElementsHaveAnAddressToo) {
  Workspace<int32_t> workspace;
  EXPECT_EQ(workspace.data(), nullptr);
  EXPECT_NE(workspace.Get(0), nullptr);
}

TEST(WorkspaceTest, MovesWithItsContents) {
  Workspace<float> from;
  from.Get(3)[2] = 4;
  const float* const begin = from.data();
  Workspace<float> to = std::move(from);
  EXPECT_EQ(to.data(), begin);
  EXPECT_EQ(to.Get(3)[2], 4);
}

}  // namespace
}  // namespace lockstep
