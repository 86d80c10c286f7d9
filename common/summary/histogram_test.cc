#include "lockstep/common/summary/histogram.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(MakeHistogramTest, CountsInTensorFlowsBuckets) {
  const v1::HistogramProto histogram = MakeHistogram({-1, 0, 0, 1e-13f, 2}).value();
  EXPECT_EQ(histogram.min(), -1);
  EXPECT_EQ(histogram.max(), 2);
  EXPECT_EQ(histogram.num(), 5);
  EXPECT_NEAR(histogram.sum(), 1, 1e-12);
  EXPECT_NEAR(histogram.sum_squares(), 5, 1e-12);
  // Values from TensorFlow 2.21, tf.compat.v1.summary.histogram.
  ASSERT_EQ(histogram.bucket_size(), 7);
  EXPECT_THAT(histogram.bucket(), ElementsAre(0, 1, 0, 3, 0, 1, 0));
  const std::vector<double> limits = {-1.0089710279437536,
                                      -0.917246389039776,
                                      0,
                                      1e-12,
                                      1.9661990955585713,
                                      2.1628190051144287,
                                      std::numeric_limits<double>::max()};
  EXPECT_EQ(std::vector<double>(histogram.bucket_limit().begin(), histogram.bucket_limit().end()), limits);
}

TEST(MakeHistogramTest, CountsTheLargestFloats) {
  const float largest = std::numeric_limits<float>::max();
  const v1::HistogramProto histogram = MakeHistogram({-largest, largest}).value();
  EXPECT_THAT(histogram.bucket(), ElementsAre(0, 1, 0, 1));
}

TEST(MakeHistogramTest, IsEmptyWithoutValues) {
  const v1::HistogramProto histogram = MakeHistogram({}).value();
  EXPECT_EQ(histogram.num(), 0);
  EXPECT_THAT(histogram.bucket(), ElementsAre(0));
}

TEST(MakeHistogramTest, RefusesValuesThatAreNotFinite) {
  EXPECT_EQ(MakeHistogram({1, NAN}).status().message(), "value 1 is nan");
  EXPECT_EQ(MakeHistogram({INFINITY}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
