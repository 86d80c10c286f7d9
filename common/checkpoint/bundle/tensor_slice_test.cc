#include "lockstep/common/checkpoint/bundle/tensor_slice.h"

#include <utility>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

absl::StatusOr<TensorSlice> Slice(const Shape& shape, std::initializer_list<std::pair<int64_t, int64_t>> extents) {
  v1::TensorSliceProto proto;
  for (const auto& [start, length] : extents) {
    v1::TensorSliceProto::Extent* const extent = proto.add_extent();
    extent->set_start(start);
    if (length != -1) extent->set_length(length);
  }
  return TensorSlice::FromProto(proto, shape);
}

TEST(TensorSliceTest, CopiesToItsPlaceInThreeDimensions) {
  const Shape shape = {2, 3, 4};
  const TensorSlice slice = Slice(shape, {{0, -1}, {1, 2}, {2, 2}}).value();
  EXPECT_EQ(slice.num_elements(), 8u);
  EXPECT_EQ(slice.ToString(), "0,2:1,2:2,2");
  std::string tensor(24, '.');
  slice.CopyInto("abcdefgh", shape, 1, &tensor[0]);
  EXPECT_EQ(tensor,
            "......ab..cd"
            "......ef..gh");
}

TEST(TensorSliceTest, CopiesAScalarAndNothing) {
  std::string tensor = "....";
  Slice({}, {}).value().CopyInto("abcd", {}, 4, &tensor[0]);
  EXPECT_EQ(tensor, "abcd");
  Slice({4}, {{4, 0}}).value().CopyInto("", {4}, 1, &tensor[0]);
  EXPECT_EQ(tensor, "abcd");
}

TEST(TensorSliceTest, RefusesSlicesOutsideTheShape) {
  const Shape shape = {4, 5};
  EXPECT_TRUE(Slice(shape, {{0, 4}, {0, 5}}).ok());
  EXPECT_FALSE(Slice(shape, {{0, 4}}).ok());
  EXPECT_FALSE(Slice(shape, {{1, 4}, {0, 5}}).ok());
  EXPECT_FALSE(Slice(shape, {{5, 0}, {0, 5}}).ok());
  EXPECT_FALSE(Slice(shape, {{-1, 2}, {0, 5}}).ok());
  EXPECT_FALSE(Slice(shape, {{0, -2}, {0, 5}}).ok());
  EXPECT_FALSE(Slice(shape, {{INT64_MAX, INT64_MAX}, {0, 5}}).ok());
}

TEST(CheckCoverTest, WantsEachElementOnce) {
  const Shape shape = {4, 4};
  const TensorSlice left = Slice(shape, {{0, -1}, {0, 2}}).value();
  const TensorSlice right = Slice(shape, {{0, -1}, {2, 2}}).value();
  const TensorSlice top = Slice(shape, {{0, 2}, {0, -1}}).value();
  EXPECT_TRUE(CheckCover({left, right}, shape).ok());
  EXPECT_EQ(CheckCover({left}, shape).message(), "the slices have 8 of the 16 elements");
  EXPECT_EQ(CheckCover({left, top}, shape).message(), "the slices 0,4:0,2 and 0,2:0,4 overlap");
  EXPECT_FALSE(CheckCover({left, right, right}, shape).ok());
}

}  // namespace
}  // namespace lockstep
