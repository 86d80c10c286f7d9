#include "lockstep/worker/nn/compute/conv_input_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

SlidingWindow Valid(int64_t input, int64_t size, int64_t stride) {
  return {input, size, stride, 0, (input - size) / stride + 1};
}

SlidingWindow Same(int64_t input, int64_t size, int64_t stride) {
  SlidingWindow window{input, size, stride, 0, (input + stride - 1) / stride};
  window.padding = std::max<int64_t>(0, window.span() - input) / 2;
  return window;
}

struct Case {
  WindowGeometry geometry;
  int64_t filters = 1;
  int64_t batch = 1;

  int64_t input_size() const { return batch * geometry.y.input * geometry.x.input * geometry.channels; }
  int64_t output_size() const { return batch * geometry.y.output * geometry.x.output * filters; }
  int64_t kernel_size() const { return geometry.y.size * geometry.x.size * geometry.channels * filters; }
  std::string ToString() const {
    const auto window = [](const SlidingWindow& w) {
      return absl::StrCat(w.size, "/", w.stride, " over ", w.input, ", padding ", w.padding, "; ");
    };
    return absl::StrCat(window(geometry.y), window(geometry.x), geometry.channels, " channels, ", filters,
                        " filters, batch ", batch);
  }
};

// Adds each output pixel's gradient to the input positions of its window.
std::vector<double> Expected(const Case& c, const std::vector<float>& dy, const std::vector<float>& kernel) {
  const SlidingWindow& wy = c.geometry.y;
  const SlidingWindow& wx = c.geometry.x;
  std::vector<double> dx(c.input_size());
  for (int64_t pixel = 0; pixel < c.batch * wy.output * wx.output; ++pixel) {
    const int64_t image = pixel / (wy.output * wx.output);
    for (int64_t tap = 0; tap < wy.size * wx.size; ++tap) {
      const int64_t y = wy.first(pixel / wx.output % wy.output) + tap / wx.size;
      const int64_t x = wx.first(pixel % wx.output) + tap % wx.size;
      if (y < 0 || y >= wy.input || x < 0 || x >= wx.input) continue;
      for (int64_t channel = 0; channel < c.geometry.channels; ++channel) {
        double& to = dx[((image * wy.input + y) * wx.input + x) * c.geometry.channels + channel];
        for (int64_t n = 0; n < c.filters; ++n) {
          to += static_cast<double>(dy[pixel * c.filters + n]) *
                kernel[(tap * c.geometry.channels + channel) * c.filters + n];
        }
      }
    }
  }
  return dx;
}

void ExpectGradient(const Case& c, int threads = 1) {
  ComputeContext compute(threads);
  ConvInputGradient gradient(c.geometry, c.filters);
  // Runs twice to check that nothing remains from the first batch.
  for (const uint64_t stream : {10, 20}) {
    const std::vector<float> dy = RandomIntegers(c.output_size(), stream);
    const std::vector<float> kernel = RandomIntegers(c.kernel_size(), stream + 1);
    ResultArray dx(c.input_size());
    gradient.Compute(&compute, c.batch, dy.data(), kernel.data(), dx.data());
    EXPECT_EQ(FirstDifference(dx.values(), Expected(c, dy, kernel), 0), "") << c.ToString();
    EXPECT_TRUE(dx.borders_intact()) << c.ToString();
  }
}

TEST(ConvInputGradientTest, IsTheTransposeOfTheConvolution) {
  for (const int64_t size : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3, 6}) {
      ExpectGradient({{Valid(7, size, stride), Valid(9, size, stride), 2}, 3});
      ExpectGradient({{Same(7, size, stride), Same(9, size, stride), 2}, 3});
    }
  }
}

TEST(ConvInputGradientTest, HeightAndWidthAreTakenApart) {
  ExpectGradient({{Same(5, 3, 2), Valid(8, 2, 1), 2}, 3});
  ExpectGradient({{Valid(6, 1, 4), Same(7, 4, 3), 2}, 3});
  ExpectGradient({{Valid(1, 1, 1), Same(11, 5, 1), 1}, 1});
  ExpectGradient({{Same(11, 5, 2), Valid(1, 1, 1), 1}, 1});
}

TEST(ConvInputGradientTest, WindowsMayBeLargerThanTheInput) {
  ExpectGradient({{Same(2, 5, 1), Same(3, 7, 2), 2}, 3});
  ExpectGradient({{Same(1, 4, 3), Same(1, 4, 5), 1}, 2});
}

TEST(ConvInputGradientTest, PositionsThatNoWindowCoversGetZero) {
  ExpectGradient({{Valid(10, 2, 5), Valid(9, 1, 4), 3}, 2});
  // The last positions are beyond the last window.
  ExpectGradient({{Valid(8, 3, 3), Valid(6, 4, 4), 3}, 2});
}

TEST(ConvInputGradientTest, ChannelsAndFiltersMayEndInAPanel) {
  for (const int64_t channels : {1, 3, 7, 8, 9, 15, 16, 17, 33}) {
    ExpectGradient({{Same(3, 3, 1), Same(4, 3, 2), channels}, 2});
    ExpectGradient({{Same(3, 3, 1), Same(4, 3, 2), 2}, channels});
  }
}

TEST(ConvInputGradientTest, ImagesAreComputedInGroups) {
  for (const int64_t batch : {2, 15, 16, 17, 40}) {
    ExpectGradient({{Same(3, 3, 1), Valid(4, 3, 1), 1}, 2, batch});
    ExpectGradient({{Valid(2, 1, 1), Valid(3, 1, 1), 2}, 2, batch});
    ExpectGradient({{Same(3, 3, 1), Valid(4, 3, 1), 1}, 2, batch}, 3);
  }
}

TEST(ConvInputGradientTest, OneThreadAndThreeGiveTheSameBits) {
  const Case c{{Same(6, 3, 1), Same(7, 3, 1), 5}, 9, 20};
  const std::vector<float> dy = RandomFloats(c.output_size(), 1);
  const std::vector<float> kernel = RandomFloats(c.kernel_size(), 2);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    ComputeContext compute(threads);
    std::vector<float> dx(c.input_size());
    ConvInputGradient(c.geometry, c.filters).Compute(&compute, c.batch, dy.data(), kernel.data(), dx.data());
    EXPECT_EQ(FirstDifference(dx, Expected(c, dy, kernel), 3e-5), "");
    results.push_back(dx);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0);
}

TEST(ConvInputGradientTest, ANotANumberStaysInItsWindow) {
  const Case c{{Valid(5, 2, 1), Valid(5, 2, 1), 1}, 1};
  std::vector<float> dy(c.output_size(), 1.0f);
  dy[1 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> kernel(c.kernel_size(), 1.0f);
  ComputeContext compute(1);
  std::vector<float> dx(c.input_size());
  ConvInputGradient(c.geometry, c.filters).Compute(&compute, 1, dy.data(), kernel.data(), dx.data());
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 5; ++x) {
      EXPECT_EQ(std::isnan(dx[y * 5 + x]), (y == 1 || y == 2) && (x == 2 || x == 3)) << y << " " << x;
    }
  }
}

}  // namespace
}  // namespace lockstep
