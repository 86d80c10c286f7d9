#include "lockstep/common/checkpoint/warm_start/permutation.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(PermutationTest, TransposesAMatrix) {
  const std::vector<float> in = {1, 2, 3, 4, 5, 6};
  std::vector<float> out(6);
  Permute(Shape({2, 3}), {1, 0}, in, absl::MakeSpan(out));
  EXPECT_EQ(Permuted(Shape({2, 3}), {1, 0}), Shape({3, 2}));
  EXPECT_THAT(out, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(PermutationTest, MakesAKernelOfPytorchsConvolution) {
  const Shape torch = {2, 3, 4, 5};
  std::vector<float> in(torch.num_elements()), out(in.size());
  std::iota(in.begin(), in.end(), 0.0f);
  Permute(torch, PytorchPermutation(4), in, absl::MakeSpan(out));
  const Shape kernel = Permuted(torch, PytorchPermutation(4));
  ASSERT_EQ(kernel, Shape({4, 5, 3, 2}));
  for (int h = 0; h < 4; ++h) {
    for (int w = 0; w < 5; ++w) {
      for (int c = 0; c < 3; ++c) {
        for (int o = 0; o < 2; ++o) {
          EXPECT_EQ(out[((h * 5 + w) * 3 + c) * 2 + o], in[((o * 3 + c) * 4 + h) * 5 + w]);
        }
      }
    }
  }
}

TEST(PermutationTest, ATensorWithoutElementsIsLeftAlone) {
  Permute(Shape({0, 3}), {1, 0}, {}, {});
  EXPECT_EQ(Permuted(Shape({0, 3}), {1, 0}), Shape({3, 0}));
  EXPECT_TRUE(PytorchPermutation(1).empty());
}

}  // namespace
}  // namespace lockstep
