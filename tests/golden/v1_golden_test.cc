// Reads a checkpoint in TensorFlow's format V1, written by v1_checkpoint.py.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/formats/v1_checkpoint.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr char kGolden[] = "tests/golden/v1_checkpoint.ckpt";

TEST(V1GoldenTest, ReadsTensorFlowsFile) {
  ASSERT_TRUE(IsV1Checkpoint(FileSystem::Real(), kGolden));
  const auto reader = OpenTensors(FileSystem::Real(), kGolden);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->names(), ElementsAre("double", "global_step", "ints", "net/parts", "net/weights", "text"));
  const auto weights = (*reader)->Read("net/weights");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->shape(), (Shape{2, 3}));
  EXPECT_THAT(weights->flat<float>(), ElementsAre(0.5f, -1, 2, 3.25f, 0, 7));
  // A variable partitioned into three slices.
  EXPECT_THAT((*reader)->Read("net/parts")->flat<float>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT((*reader)->Read("global_step")->flat<int64_t>(), ElementsAre(-1234567890123));
  EXPECT_THAT((*reader)->Read("ints")->flat<int32_t>(), ElementsAre(1, -2, 300));
  EXPECT_THAT((*reader)->Read("double")->flat<double>(), ElementsAre(0.1));
  EXPECT_TRUE(absl::IsUnimplemented((*reader)->Read("text").status()));
  EXPECT_EQ((*reader)->List("text")->type, "type 7");
  EXPECT_TRUE(absl::IsNotFound((*reader)->Read("other").status()));
  EXPECT_EQ((*reader)->Verify(), absl::OkStatus());
}

}  // namespace
}  // namespace lockstep
