#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/products/convolution.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

// Maximum number of pixels in a band.
constexpr int64_t kBandPixels = 192;

struct Case {
  int64_t count, height, width, filters, channels, kernel_y, kernel_x, stride_y, stride_x;
};

// Images and gradients, with the arguments of KernelGradientBlocks for them.
struct Operands {
  explicit Operands(const Case& c, std::vector<float> (*random)(int64_t, uint64_t) = RandomIntegers) {
    // Includes an additional column and row that no window reaches.
    const int64_t row_size = ((c.width - 1) * c.stride_x + c.kernel_x + 1) * c.channels;
    input.image_size = ((c.height - 1) * c.stride_y + c.kernel_y + 1) * row_size;
    images = random(c.count * input.image_size, 1);
    gradients = random(c.count * c.height * c.width * c.filters, 2);
    input.images = images.data();
    input.gradients = gradients.data();
    input.count = c.count;
    input.height = c.height;
    input.width = c.width;
    input.columns = c.filters;
    input.pixel_stride = c.stride_x * c.channels;
    input.row_stride = c.stride_y * row_size;
    input.patch = {c.kernel_y, c.kernel_x * c.channels, 1, row_size};
  }
  int64_t patch_size() const { return input.patch.runs * input.patch.length; }
  float x(int64_t image, int64_t y, int64_t x, int64_t element) const {
    const TileElements& patch = input.patch;
    return images[image * input.image_size + y * input.row_stride + x * input.pixel_stride +
                  element / patch.length * patch.run_stride + element % patch.length];
  }
  float dy(int64_t image, int64_t y, int64_t x, int64_t column) const {
    return gradients[((image * input.height + y) * input.width + x) * input.columns + column];
  }

  std::vector<float> images;
  std::vector<float> gradients;
  KernelGradientInput input;
};

// Computes the kernel gradient with `together` blocks per call.
ResultArray Compute(const Operands& operands, int64_t together = std::numeric_limits<int64_t>::max()) {
  ResultArray result(operands.patch_size() * operands.input.columns);
  // Computes the blocks in reverse order, because threads may compute them in any order.
  for (int64_t end = NumKernelGradientBlocks(operands.input); end > 0;) {
    const int64_t begin = end - std::min(end, together);
    KernelGradientBlocks(operands.input, begin, end, result.data());
    end = begin;
  }
  EXPECT_TRUE(result.borders_intact());
  return result;
}

double Expected(const Operands& operands, int64_t element, int64_t column) {
  const KernelGradientInput& input = operands.input;
  double sum = 0;
  for (int64_t i = 0; i < input.count; ++i) {
    for (int64_t y = 0; y < input.height; ++y) {
      for (int64_t x = 0; x < input.width; ++x) {
        sum += static_cast<double>(operands.x(i, y, x, element)) * operands.dy(i, y, x, column);
      }
    }
  }
  return sum;
}

void ExpectOuterProducts(const Case& c) {
  const Operands operands(c);
  std::vector<double> expected;
  for (int64_t element = 0; element < operands.patch_size(); ++element) {
    for (int64_t column = 0; column < c.filters; ++column) expected.push_back(Expected(operands, element, column));
  }
  ForEachTarget([&] { EXPECT_EQ(FirstDifference(Compute(operands).values(), expected, 0), ""); });
}

TEST(KernelGradientTest, SumsPatchAndGradientOuterProducts) {
  ExpectOuterProducts({2, 4, 5, 3, 2, 3, 3, 1, 1});
  ExpectOuterProducts({1, 1, 1, 1, 1, 1, 1, 1, 1});
  ExpectOuterProducts({3, 2, 7, 16, 1, 1, 5, 1, 1});
  ExpectOuterProducts({1, 3, 3, 33, 3, 2, 2, 1, 1});
}

TEST(KernelGradientTest, HeightAndWidthHaveStridesOfTheirOwn) {
  ExpectOuterProducts({2, 3, 4, 5, 2, 3, 2, 2, 1});
  ExpectOuterProducts({2, 3, 4, 5, 2, 3, 2, 1, 3});
  ExpectOuterProducts({1, 4, 2, 5, 3, 2, 2, 4, 5});
}

TEST(KernelGradientTest, ColumnsMayEndAnywhereInAPanel) {
  for (int64_t filters = 1; filters <= 34; ++filters) ExpectOuterProducts({1, 2, 3, filters, 1, 2, 2, 1, 1});
}

TEST(KernelGradientTest, PatchesMayEndAnywhereInATile) {
  for (int64_t channels = 1; channels <= 8; ++channels) ExpectOuterProducts({1, 2, 2, 2, channels, 1, 1, 1, 1});
  // More patch elements than one block holds: 96 or 224, depending on the target.
  ExpectOuterProducts({1, 2, 2, 17, 97, 1, 1, 1, 1});
  ExpectOuterProducts({1, 2, 2, 3, 20, 3, 5, 1, 1});
  ExpectOuterProducts({1, 2, 2, 17, 230, 1, 1, 1, 1});
}

TEST(KernelGradientTest, ImagesMayHaveMoreThanOneBandOfPixels) {
  ExpectOuterProducts({2, 20, 21, 3, 1, 2, 2, 1, 1});
  ExpectOuterProducts({1, 2, 200, 3, 1, 2, 3, 1, 1});
  ExpectOuterProducts({1, 1, 500, 1, 1, 1, 1, 1, 2});
  ExpectOuterProducts({1, 193, 1, 2, 1, 1, 1, 1, 1});
}

// Sums each band in one chain of fused multiply-adds, then sums the bands of all images in order.
float ChainsOfBands(const Operands& operands, int64_t element, int64_t column) {
  const KernelGradientInput& input = operands.input;
  const int64_t columns = std::min(input.width, kBandPixels);
  const int64_t rows = kBandPixels / columns;
  float total = 0;
  for (int64_t i = 0; i < input.count; ++i) {
    for (int64_t top = 0; top < input.height; top += rows) {
      for (int64_t left = 0; left < input.width; left += columns) {
        float band = 0;
        for (int64_t y = top; y < std::min(input.height, top + rows); ++y) {
          for (int64_t x = left; x < std::min(input.width, left + columns); ++x) {
            band = std::fma(operands.x(i, y, x, element), operands.dy(i, y, x, column), band);
          }
        }
        total += band;
      }
    }
  }
  return total;
}

TEST(KernelGradientTest, SumsPixelsInBandsThenTheBandsInOrder) {
  for (const Case& c :
       {Case{2, 15, 14, 3, 1, 2, 2, 1, 1}, Case{1, 3, 300, 2, 1, 1, 1, 1, 1}, Case{2, 15, 14, 37, 9, 2, 2, 1, 1}}) {
    const Operands operands(c, RandomFloats);
    std::vector<float> expected;
    for (int64_t element = 0; element < operands.patch_size(); ++element) {
      for (int64_t filter = 0; filter < c.filters; ++filter) {
        expected.push_back(ChainsOfBands(operands, element, filter));
      }
    }
    ForEachTarget([&] { ASSERT_EQ(Compute(operands).values(), absl::MakeConstSpan(expected)); });
  }
}

TEST(KernelGradientTest, ABlocksBitsDoNotDependOnOthers) {
  // The number of blocks ranges from 3 (with tiles of 14 rows and 32 columns) to 65 (with tiles of 6 rows and 16
  // columns), which is more than one pass over the images handles.
  for (const Case& c : {Case{2, 15, 14, 65, 9, 2, 2, 1, 1}, Case{2, 2, 3, 200, 29, 4, 4, 1, 1}}) {
    const Operands operands(c, RandomFloats);
    ForEachTarget([&] {
      const ResultArray whole = Compute(operands);
      for (const int64_t together : {1, 2, 5}) EXPECT_EQ(Compute(operands, together).values(), whole.values());
    });
  }
}

TEST(KernelGradientTest, ANotANumberStaysInItsColumn) {
  Operands operands({1, 2, 2, 3, 1, 2, 2, 1, 1});
  operands.gradients[2 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  ForEachTarget([&] {
    const ResultArray result = Compute(operands);
    for (int64_t i = 0; i < 4 * 3; ++i) EXPECT_EQ(std::isnan(result.values()[i]), i % 3 == 1) << i;
  });
}

TEST(KernelGradientTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(250, [](RandomCase& c) {
    // Uses wide images or many channels, but not both, to limit the work.
    const bool wide = c.OneIn(2);
    Case shape{c.Between(1, 3), c.Size(1, wide ? 15 : 5), c.Size(1, wide ? 250 : 12), 1, c.Size(1, wide ? 4 : 40), 0, 0,
               c.Between(1, 3), c.Between(1, 3)};
    shape.kernel_y = c.Between(1, 4);
    shape.kernel_x = c.Between(1, 4);
    const int64_t products =
        shape.count * shape.height * shape.width * shape.channels * shape.kernel_y * shape.kernel_x;
    shape.filters = c.Size(1, std::max<int64_t>(1, std::min<int64_t>(80, 300000 / products)));
    Operands operands(shape);
    operands.images = c.Numbers(static_cast<int64_t>(operands.images.size()));
    operands.gradients = c.Numbers(static_cast<int64_t>(operands.gradients.size()));
    // Makes the images end with the last patch.
    operands.images.resize(
        (shape.count - 1) * operands.input.image_size + (shape.height - 1) * operands.input.row_stride +
        (shape.width - 1) * operands.input.pixel_stride +
        (operands.input.patch.runs - 1) * operands.input.patch.run_stride + operands.input.patch.length);
    operands.input.images = c.Input(operands.images);
    operands.input.gradients = c.Input(operands.gradients);
    float* const result = c.Output(operands.patch_size() * shape.filters);
    // The number of blocks depends on the target.
    const int64_t blocks = NumKernelGradientBlocks(operands.input);
    const int64_t together = c.Size(1, 20);
    for (int64_t begin = 0; begin < blocks; begin += together) {
      KernelGradientBlocks(operands.input, begin, std::min(blocks, begin + together), result);
    }
    for (int64_t i = 0; i < operands.patch_size() * shape.filters; ++i) {
      ASSERT_PRED2(SameFloats, result[i], ChainsOfBands(operands, i / shape.filters, i % shape.filters)) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
