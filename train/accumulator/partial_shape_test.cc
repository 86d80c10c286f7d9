#include "lockstep/train/accumulator/partial_shape.h"

#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(PartialShapeTest, UnknownRankMatchesEveryShape) {
  const PartialShape shape;
  EXPECT_FALSE(shape.has_rank());
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_TRUE(shape.Matches({}));
  EXPECT_TRUE(shape.Matches({2, 3}));
  EXPECT_EQ(shape.ToString(), "?");
}

TEST(PartialShapeTest, KnownDimensionsMustMatch) {
  const PartialShape shape = {2, PartialShape::kUnknown};
  EXPECT_TRUE(shape.Matches({2, 3}));
  EXPECT_TRUE(shape.Matches({2, 0}));
  EXPECT_FALSE(shape.Matches({3, 3}));
  EXPECT_FALSE(shape.Matches({2}));
  EXPECT_FALSE(shape.Matches({2, 3, 1}));
  EXPECT_EQ(shape.ToString(), "[2,?]");
}

TEST(PartialShapeTest, KnownShapeMatchesItselfAlone) {
  const PartialShape scalar = Shape();
  EXPECT_TRUE(scalar.has_rank());
  EXPECT_TRUE(scalar.Matches({}));
  EXPECT_FALSE(scalar.Matches({1}));
  EXPECT_EQ(scalar.ToString(), "[]");
  EXPECT_TRUE(PartialShape(Shape{4, 5}).Matches({4, 5}));
  EXPECT_FALSE(PartialShape(Shape{4, 5}).Matches({5, 4}));
}

}  // namespace
}  // namespace lockstep::train
