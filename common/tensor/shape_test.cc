#include "lockstep/common/tensor/shape.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShapeTest, AScalarHasNoDimensionsAndOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
}

TEST(ShapeTest, CountsItsElements) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.dim(1), 3);
  EXPECT_THAT(shape.dims(), ElementsAre(2, 3, 4));
  EXPECT_EQ(shape.num_elements(), 24);
  EXPECT_EQ(shape.ToString(), "[2,3,4]");
  EXPECT_EQ((Shape{5, 0, 7}).num_elements(), 0);
}

TEST(ShapeTest, EqualsByItsDimensions) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{6}), (Shape{6, 1}));
}

TEST(ShapeTest, ProtosCarryIt) {
  const Shape shape{2, 0, 4};
  const auto copy = Shape::FromProto(shape.ToProto());
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(*copy, shape);
}

TEST(ShapeTest, RefusesNegativeAndHugeDimensions) {
  const auto error = [](std::vector<int64_t> dims) { return std::string(Shape::Create(dims).status().message()); };
  EXPECT_THAT(error({2, -1}), HasSubstr("[2,-1] has a negative dimension"));
  EXPECT_THAT(error({int64_t{1} << 40, int64_t{1} << 40}), HasSubstr("more than 2^62 elements"));
  EXPECT_THAT(error({INT64_MAX}), HasSubstr("more than 2^62 elements"));
  EXPECT_TRUE(Shape::Create({int64_t{1} << 31, int64_t{1} << 31}).ok());
  v1::TensorShapeProto unknown;
  unknown.set_unknown_rank(true);
  EXPECT_EQ(Shape::FromProto(unknown).status().code(), absl::StatusCode::kInvalidArgument);
}

// A zero dimension must not hide from num_elements that the product of the other dimensions overflows.
TEST(ShapeTest, AZeroAmongHugeDimensionsIsSafe) {
  const auto shape = Shape::Create({int64_t{1} << 40, int64_t{1} << 40, 0});
  EXPECT_FALSE(shape.ok());
  const auto zero_first = Shape::Create({0, int64_t{1} << 40, int64_t{1} << 40});
  ASSERT_TRUE(zero_first.ok());
  EXPECT_EQ(zero_first->num_elements(), 0);
}

}  // namespace
}  // namespace lockstep
