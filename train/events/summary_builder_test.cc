#include "lockstep/train/events/summary_builder.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SummaryBuilderTest, CollectsTheValuesOfAStep) {
  SummaryBuilder builder;
  builder.AddScalar("loss", 0.5);
  ASSERT_TRUE(builder.AddHistogram("weights", {1, 2}).ok());
  EXPECT_EQ(builder.AddHistogram("bias", {NAN}).message(), "histogram bias: value 0 is nan");
  ASSERT_TRUE(builder.AddImage("input", 1, 2, 1, {0, 255}).ok());
  EXPECT_EQ(builder.AddImage("none", 1, 2, 1, {0}).message(),
            "image none: an image of [1, 2, 1] has 1 bytes, must have 2");
  const v1::Event event = builder.Build(7);
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.wall_time(), 0);
  ASSERT_EQ(event.summary().value_size(), 3);
  EXPECT_EQ(event.summary().value(0).tag(), "loss");
  EXPECT_EQ(event.summary().value(0).simple_value(), 0.5);
  EXPECT_EQ(event.summary().value(1).histo().num(), 2);
  EXPECT_EQ(event.summary().value(2).image().width(), 2);
  EXPECT_EQ(event.summary().value(2).image().encoded_image_string().substr(1, 3), "PNG");
  EXPECT_EQ(builder.Build(8).summary().value_size(), 0);
}

}  // namespace
}  // namespace lockstep
