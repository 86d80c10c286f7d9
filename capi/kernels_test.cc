// Tests the errors of the functions in kernels.h, their values in cases whose results are exact, and their bits on each
// target. tests/python tests that they agree with PyTorch.
#include "lockstep/capi/kernels.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/capi/answer.h"
#include "lockstep/capi/lockstep.h"
#include "lockstep/kernels/testing/each_target.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Floats = std::vector<float>;

lockstep_images ImagesOf(int64_t count, int64_t height, int64_t width, int64_t channels) {
  lockstep_images images = {};
  images.size = sizeof(images);
  images.count = count;
  images.height = height;
  images.width = width;
  images.channels = channels;
  images.window_height = images.window_width = 2;
  images.stride_y = images.stride_x = 1;
  return images;
}

// Returns pseudorandom numbers in [-1, 1).
Floats Numbers(size_t size, uint32_t seed) {
  Floats numbers(size);
  for (float& number : numbers) {
    seed = seed * 1664525 + 1013904223;
    number = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return numbers;
}

void ExpectError(int code, const std::string& text) {
  EXPECT_EQ(code, LOCKSTEP_INVALID_ARGUMENT) << text;
  EXPECT_THAT(std::string(LastError()), HasSubstr(text));
}

TEST(KernelsTest, LinearLayerMultipliesAndAdds) {
  const Floats x = {1, 2, 3, 4}, weight = {1, 0, 0, 1, 2, 2}, bias = {0, 10, 20}, dy = {1, 0, 2, 0, 1, 0};
  Floats y(6), dx(4), dweight(6), dbias(3);
  ASSERT_EQ(lockstep_linear(2, 2, 3, x.data(), weight.data(), bias.data(), y.data()), LOCKSTEP_OK);
  EXPECT_THAT(y, ElementsAre(1, 12, 26, 3, 14, 34));
  ASSERT_EQ(
      lockstep_linear_gradient(2, 2, 3, x.data(), weight.data(), dy.data(), dx.data(), dweight.data(), dbias.data()),
      LOCKSTEP_OK);
  EXPECT_THAT(dx, ElementsAre(5, 4, 0, 1));
  EXPECT_THAT(dweight, ElementsAre(1, 2, 3, 4, 2, 4));
  EXPECT_THAT(dbias, ElementsAre(1, 1, 2));
}

TEST(KernelsTest, GradientsOfNoRowsAreZero) {
  const Floats weight(6);
  Floats dweight(6, 7), dbias(3, 7);
  ASSERT_EQ(lockstep_linear_gradient(0, 2, 3, nullptr, weight.data(), nullptr, nullptr, dweight.data(), dbias.data()),
            LOCKSTEP_OK);
  EXPECT_EQ(dweight, Floats(6));
  EXPECT_EQ(dbias, Floats(3));
}

TEST(KernelsTest, IgnoredLabelsDoNotCount) {
  const Floats x(6);
  const int64_t labels[] = {1, -100, 2};
  Floats loss(3), dx(6);
  ASSERT_EQ(lockstep_softmax_loss(3, 2, x.data(), labels, nullptr, -100, 0, LOCKSTEP_MEAN, loss.data(), dx.data()),
            LOCKSTEP_INVALID_ARGUMENT);
  EXPECT_STREQ(LastError(), "labels[2] is 2, must be in [0, 2)");
  const int64_t right[] = {1, -100, 0};
  ASSERT_EQ(lockstep_softmax_loss(3, 2, x.data(), right, nullptr, -100, 0, LOCKSTEP_MEAN, loss.data(), dx.data()),
            LOCKSTEP_OK);
  EXPECT_FLOAT_EQ(loss[0], std::log(2.0f));
  EXPECT_THAT(dx, ElementsAre(0.25f, -0.25f, 0, 0, -0.25f, 0.25f));
  const int64_t none[] = {-100, -100, -100};
  ASSERT_EQ(lockstep_softmax_loss(3, 2, x.data(), none, nullptr, -100, 0, LOCKSTEP_MEAN, loss.data(), dx.data()),
            LOCKSTEP_OK);
  EXPECT_TRUE(std::isnan(loss[0]));
}

TEST(KernelsTest, ConvolutionReadsTheBorder) {
  lockstep_images images = ImagesOf(1, 1, 2, 1);
  images.top = images.right = 1;
  const Floats padded = {0, 0, 0, 1, 2, 0}, kernel = {1, 10, 100, 1000}, bias = {0.5f}, dy = {1, 0};
  Floats y(2), dx(2), dkernel(4), dbias(1);
  ASSERT_EQ(lockstep_convolution(&images, 1, padded.data(), kernel.data(), bias.data(), y.data()), LOCKSTEP_OK);
  EXPECT_THAT(y, ElementsAre(2100.5f, 200.5f));
  ASSERT_EQ(lockstep_convolution_gradient(&images, 1, padded.data(), kernel.data(), dy.data(), dx.data(),
                                          dkernel.data(), dbias.data()),
            LOCKSTEP_OK);
  EXPECT_THAT(dx, ElementsAre(100, 1000));
  EXPECT_THAT(dkernel, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(dbias, ElementsAre(1));
}

TEST(KernelsTest, SoftmaxOfMaskedRowIsFinite) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  const Floats x = {0, kMasked, 0, kMasked};
  Floats y(4);
  ASSERT_EQ(lockstep_softmax(1, 4, x.data(), y.data()), LOCKSTEP_OK);
  EXPECT_THAT(y, ElementsAre(0.5f, 0, 0.5f, 0));
}

TEST(KernelsTest, WrongArgumentsAreNamed) {
  Floats a(64), b(64);
  const int64_t ids[] = {0, 5};
  float* const x = a.data();
  float* const y = b.data();
  ExpectError(lockstep_linear(2, 2, 2, nullptr, x, x, y), "x is null");
  ExpectError(lockstep_linear(2, 0, 2, x, x, x, y), "x with shape [2, 0] has a dimension that is too small");
  ExpectError(lockstep_linear(-1, 2, 2, x, x, x, y), "x with shape [-1, 2]");
  ExpectError(lockstep_linear(int64_t{1} << 40, 2, 2, x, x, x, y), "has more than 2^40 elements");
  ExpectError(lockstep_linear_gradient(2, 2, 2, x, x, nullptr, y, y, y), "dy is null");
  ExpectError(lockstep_activate(99, 0, 2, x, y), "there is no activation 99");
  ExpectError(lockstep_activation_gradient(LOCKSTEP_LEAKY_RELU, -1, 2, x, x, y), "slope is -1");
  ExpectError(lockstep_softmax(1, 2, x, nullptr), "y is null");
  ExpectError(lockstep_softmax_gradient(1, 2, x, x, nullptr), "dx is null");
  ExpectError(lockstep_column_moments(0, 2, nullptr, x, y), "rows is 0");
  ExpectError(lockstep_batch_norm(2, 2, -1, x, x, nullptr, nullptr, 0, x, y), "epsilon is -1");
  ExpectError(lockstep_batch_norm(2, 2, 1, x, x, x, x, LOCKSTEP_TANH, x, y), "batch norm has no activation 4");
  ExpectError(lockstep_batch_norm_gradient(0, 2, 1, 1, x, x, x, x, 0, x, x, y, y, y), "rows is 0");
  ExpectError(lockstep_layer_norm(2, 2, std::nanf(""), x, x, x, y, y, y), "epsilon is nan");
  ExpectError(lockstep_layer_norm_gradient(2, 2, x, nullptr, x, x, x, y, y, y), "means is null");
  ExpectError(lockstep_embedding_gradient(4, 2, 2, ids, -1, x, y), "ids[1] is 5, must be in [0, 4)");
  ExpectError(lockstep_dropout(1, 1.5f, 2, x, reinterpret_cast<uint8_t*>(y), y), "rate is 1.5");
  ExpectError(lockstep_dropout_gradient(0.5f, 2, nullptr, x, y), "kept is null");
  ExpectError(lockstep_softmax_loss(1, 2, x, nullptr, nullptr, -1, 0, LOCKSTEP_SUM, y, y), "exactly one of labels");
  ExpectError(lockstep_softmax_loss(1, 2, x, nullptr, x, -1, 2, LOCKSTEP_SUM, y, y), "smoothing is 2");
  ExpectError(lockstep_softmax_loss(1, 2, x, nullptr, x, -1, 0, 7, y, y), "there is no reduction 7");
  ExpectError(lockstep_elementwise_loss(LOCKSTEP_HUBER, 0, 2, x, x, LOCKSTEP_SUM, y, y), "delta is 0");
  ExpectError(lockstep_elementwise_loss(0, 0, 2, x, x, LOCKSTEP_SUM, y, y), "there is no loss 0");
}

TEST(KernelsTest, EachWrongFieldOfImagesIsNamed) {
  using Change = void (*)(lockstep_images*);
  const std::pair<Change, const char*> cases[] = {
      {[](lockstep_images* i) { i->size = 8; }, "images.size is 8"},
      {[](lockstep_images* i) { i->count = -1; }, "images.count is -1"},
      {[](lockstep_images* i) { i->channels = 0; }, "images.channels is 0"},
      {[](lockstep_images* i) { i->window_height = 4; }, "images.window_height is 4, must be in [1, 3]"},
      {[](lockstep_images* i) { i->stride_x = 65; }, "images.stride_x is 65"},
      {[](lockstep_images* i) { i->top = -1; }, "images.top is -1"},
  };
  Floats x(64), y(64);
  for (const auto& [change, expected] : cases) {
    lockstep_images images = ImagesOf(1, 3, 3, 1);
    change(&images);
    ExpectError(lockstep_convolution(&images, 1, x.data(), x.data(), nullptr, y.data()), expected);
    ExpectError(lockstep_average_pool(&images, x.data(), y.data()), expected);
  }
  ExpectError(lockstep_convolution_gradient(nullptr, 1, x.data(), x.data(), x.data(), nullptr, nullptr, nullptr),
              "images is null");
  lockstep_images images = ImagesOf(1, 3, 3, 1);
  images.bottom = 2;
  ExpectError(lockstep_max_pool(&images, x.data(), nullptr, y.data()), "images.bottom is 2, must be in [0, 1]");
  ExpectError(lockstep_max_pool_gradient(&images, nullptr, x.data(), y.data()), "images.bottom is 2");
  ExpectError(lockstep_average_pool_gradient(&images, x.data(), y.data()), "images.bottom is 2");
}

TEST(KernelsTest, EachTargetGivesTheSameBits) {
  constexpr int64_t kRows = 300, kColumns = 37;
  const Floats x = Numbers(kRows * kColumns, 1), dy = Numbers(kRows * kColumns, 2), t = Numbers(kRows * kColumns, 3);
  const auto results = [&] {
    Floats all;
    const auto output = [&all](size_t size) {
      all.resize(all.size() + size);
      return all.data() + all.size() - size;
    };
    all.reserve(1 << 20);
    const size_t size = x.size();
    EXPECT_EQ(lockstep_linear(30, 300, kColumns, x.data(), dy.data(), t.data(), output(30 * kColumns)), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_linear_gradient(30, 300, kColumns, x.data(), dy.data(), t.data(), output(size), output(size),
                                       output(kColumns)),
              LOCKSTEP_OK);
    float* const y = output(size);
    EXPECT_EQ(lockstep_softmax(kRows, kColumns, x.data(), y), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_softmax_gradient(kRows, kColumns, y, dy.data(), output(size)), LOCKSTEP_OK);
    float* const mean = output(kColumns);
    float* const variance = output(kColumns);
    EXPECT_EQ(lockstep_column_moments(kRows, kColumns, x.data(), mean, variance), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_batch_norm(kRows, kColumns, 1e-5f, mean, variance, t.data(), t.data(), LOCKSTEP_RELU, x.data(),
                                  output(size)),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_batch_norm_gradient(kRows, kColumns, 1e-5f, 1, mean, variance, t.data(), t.data(), LOCKSTEP_RELU,
                                           x.data(), dy.data(), output(size), output(kColumns), output(kColumns)),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_elementwise_loss(LOCKSTEP_SIGMOID_CROSS_ENTROPY, 0, size, x.data(), t.data(), LOCKSTEP_MEAN,
                                        output(1), output(size)),
              LOCKSTEP_OK);
    EXPECT_EQ(lockstep_softmax_loss(kRows, kColumns, x.data(), nullptr, t.data(), 0, 0.1f, LOCKSTEP_MEAN, output(1),
                                    output(size)),
              LOCKSTEP_OK);
    std::vector<uint8_t> kept((size + 7) / 8);
    EXPECT_EQ(lockstep_dropout(5, 0.3f, size, x.data(), kept.data(), output(size)), LOCKSTEP_OK);
    EXPECT_EQ(lockstep_dropout_gradient(0.3f, size, kept.data(), dy.data(), output(size)), LOCKSTEP_OK);
    return all;
  };
  ExpectSameBitsOnEachTarget(results);
}

}  // namespace
}  // namespace lockstep
