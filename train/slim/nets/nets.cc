#include "lockstep/train/slim/nets/nets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/train/slim/nets/net_builder.h"

namespace lockstep::train::slim::nets {
namespace {

using config::v1::HALF;
using config::v1::ModelConfig;
using config::v1::SAME;
using config::v1::VALID;
using Window = NetBuilder::Window;

// Every net halves the height and width five times.
constexpr int64_t kLeastImageSize = 32;
constexpr int64_t kMostImageSize = 65536;

absl::Status Check(const NetOptions& options) {
  if (options.classes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a net of ", options.classes, " classes, must have 1 or more"));
  }
  if (options.image_size < kLeastImageSize || options.image_size > kMostImageSize) {
    return absl::InvalidArgumentError(absl::StrCat("a net for images of ", options.image_size, " pixels, must be in [",
                                                   kLeastImageSize, ", ", kMostImageSize, "]"));
  }
  if (!(options.width > 0) || options.width > 100) {
    return absl::InvalidArgumentError(absl::StrCat("a net of width ", options.width, ", must be in (0, 100]"));
  }
  return absl::OkStatus();
}

// Returns the number of filters multiplied by the width, but at least `least`.
int64_t Scaled(const NetOptions& options, int64_t filters, int64_t least = 1) {
  return std::max(least, static_cast<int64_t>(static_cast<double>(filters) * options.width));
}

v1::Initializer TruncatedNormal(float stddev) {
  v1::Initializer initializer;
  initializer.mutable_truncated_normal()->set_stddev(stddev);
  return initializer;
}

// Returns tf-slim's variance scaling initializer for `inputs` inputs. The factor 1.3 compensates for the truncation.
v1::Initializer VarianceScaling(int64_t inputs) {
  return TruncatedNormal(static_cast<float>(std::sqrt(1.3 * 2.0 / static_cast<double>(inputs))));
}

v1::Initializer He() {
  v1::Initializer initializer;
  initializer.mutable_he();
  return initializer;
}

config::v1::Layer::BatchNorm BatchNorm(float decay, float epsilon, bool scale) {
  config::v1::Layer::BatchNorm batch_norm;
  batch_norm.set_decay(decay);
  batch_norm.set_epsilon(epsilon);
  batch_norm.set_no_scale(!scale);
  return batch_norm;
}

// Adds the loss, and weight decay for the variables whose names match the expression `variables`.
void AddLoss(const std::string& variables, float weight_decay, ModelConfig* model) {
  model->add_loss()->mutable_softmax_cross_entropy();
  config::v1::Regularizer* const regularizer = model->add_regularizer();
  regularizer->set_variables(variables);
  regularizer->set_l2(weight_decay);
}

// Numbers of filters in an Inception block: in the 1 x 1 branch, in the reductions and the 3 x 3 convolutions of two
// branches, and after the pooling.
struct Mixed {
  const char* name;
  int64_t direct, reduce1, branch1, reduce2, branch2, pooled;
};

std::string AddMixed(const NetOptions& options, const Mixed& block, const std::string& input, NetBuilder* net) {
  const auto name = [&](const char* layer) { return absl::StrCat(block.name, "/", layer); };
  const auto filters = [&](int64_t n) { return Scaled(options, n); };
  const std::string branch0 = net->Conv(name("Branch_0/Conv2d_0a_1x1"), input, filters(block.direct), {1});
  net->Conv(name("Branch_1/Conv2d_0a_1x1"), input, filters(block.reduce1), {1});
  const std::string branch1 = net->Conv(name("Branch_1/Conv2d_0b_3x3"), "", filters(block.branch1), {3});
  net->Conv(name("Branch_2/Conv2d_0a_1x1"), input, filters(block.reduce2), {1});
  // In this block, the original and its checkpoints use a different name.
  const bool is_odd = std::string(block.name) == "Mixed_5b";
  const std::string branch2 =
      net->Conv(name(is_odd ? "Branch_2/Conv2d_0a_3x3" : "Branch_2/Conv2d_0b_3x3"), "", filters(block.branch2), {3});
  net->MaxPool(name("Branch_3/MaxPool_0a_3x3"), input, {3, 1, SAME});
  const std::string branch3 = net->Conv(name("Branch_3/Conv2d_0b_1x1"), "", filters(block.pooled), {1});
  return net->Concat(block.name, {branch0, branch1, branch2, branch3});
}

// Adds one ResNet unit and returns its output. `strided` units halve the height and width.
std::string AddBottleneck(const std::string& scope, int64_t depth, bool projects, bool strided,
                          const std::string& input, NetBuilder* net) {
  const auto name = [&](const char* layer) { return absl::StrCat(scope, "/", layer); };
  const int64_t stride = strided ? 2 : 1;
  std::string shortcut = input;
  if (projects) {
    shortcut = net->Conv(name("shortcut"), input, 4 * depth, {1, stride, SAME}, /*linear=*/true);
  } else if (strided) {
    shortcut = net->MaxPool(name("shortcut"), input, {1, stride, VALID});
  }
  net->Conv(name("conv1"), input, depth, {1});
  net->Conv(name("conv2"), "", depth, {3, stride, HALF});
  const std::string residual = net->Conv(name("conv3"), "", 4 * depth, {1}, /*linear=*/true);
  return net->Residual(scope, shortcut, residual);
}

}  // namespace

absl::StatusOr<ModelConfig> Vgg16(const NetOptions& options) {
  RETURN_IF_ERROR(Check(options));
  ModelConfig model;
  NetBuilder net({"vgg_16", Glorot(), nullptr}, &model);
  const std::pair<int, int64_t> blocks[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
  int64_t size = options.image_size;
  int block = 0;
  for (const auto& [layers, filters] : blocks) {
    ++block;
    for (int i = 1; i <= layers; ++i) {
      net.Conv(absl::StrCat("conv", block, "/conv", block, "_", i), "", Scaled(options, filters), {3});
    }
    net.MaxPool(absl::StrCat("pool", block), "", {2, 2, VALID});
    size /= 2;
  }
  net.Conv("fc6", "", Scaled(options, 4096), {size, 1, VALID});
  net.Dropout("dropout6", 0.5f);
  net.Conv("fc7", "", Scaled(options, 4096), {1});
  net.Dropout("dropout7", 0.5f);
  net.Logits("fc8", options.classes);
  net.Flatten("fc8/squeezed");
  AddLoss("kernel$", 0.0005f, &model);
  return model;
}

absl::StatusOr<ModelConfig> InceptionV1(const NetOptions& options) {
  RETURN_IF_ERROR(Check(options));
  ModelConfig model;
  const config::v1::Layer::BatchNorm batch_norm = BatchNorm(0.9997f, 0.001f, /*scale=*/false);
  NetBuilder net({"InceptionV1", TruncatedNormal(0.01f), &batch_norm}, &model);
  net.Conv("Conv2d_1a_7x7", "", Scaled(options, 64), {7, 2, SAME});
  net.MaxPool("MaxPool_2a_3x3", "", {3, 2, SAME});
  net.Conv("Conv2d_2b_1x1", "", Scaled(options, 64), {1});
  net.Conv("Conv2d_2c_3x3", "", Scaled(options, 192), {3});
  std::string last = net.MaxPool("MaxPool_3a_3x3", "", {3, 2, SAME});
  const auto add = [&](const Mixed& block) { last = AddMixed(options, block, last, &net); };
  add({"Mixed_3b", 64, 96, 128, 16, 32, 32});
  add({"Mixed_3c", 128, 128, 192, 32, 96, 64});
  last = net.MaxPool("MaxPool_4a_3x3", "", {3, 2, SAME});
  add({"Mixed_4b", 192, 96, 208, 16, 48, 64});
  add({"Mixed_4c", 160, 112, 224, 24, 64, 64});
  add({"Mixed_4d", 128, 128, 256, 24, 64, 64});
  add({"Mixed_4e", 112, 144, 288, 32, 64, 64});
  add({"Mixed_4f", 256, 160, 320, 32, 128, 128});
  last = net.MaxPool("MaxPool_5a_2x2", "", {2, 2, SAME});
  add({"Mixed_5b", 256, 160, 320, 32, 128, 128});
  const Mixed end = {"Mixed_5c", 384, 192, 384, 48, 128, 128};
  add(end);
  const int64_t channels = Scaled(options, end.direct) + Scaled(options, end.branch1) + Scaled(options, end.branch2) +
                           Scaled(options, end.pooled);
  net.Mean("Logits/AvgPool_0a_7x7", channels);
  net.Dropout("Logits/Dropout_0b", 0.2f);
  // In the original, this layer is outside the scope that sets the small standard deviation.
  net.Logits("Logits/Conv2d_0c_1x1", options.classes, VarianceScaling(channels));
  net.Flatten("Logits/SpatialSqueeze");
  AddLoss("kernel$", 0.00004f, &model);
  return model;
}

absl::StatusOr<ModelConfig> ResnetV1_50(const NetOptions& options) {
  RETURN_IF_ERROR(Check(options));
  ModelConfig model;
  const config::v1::Layer::BatchNorm batch_norm = BatchNorm(0.997f, 1e-5f, /*scale=*/true);
  NetBuilder net({"resnet_v1_50", He(), &batch_norm}, &model);
  net.Conv("conv1", "", Scaled(options, 64), {7, 2, HALF});
  std::string last = net.MaxPool("pool1", "", {3, 2, SAME});
  int64_t channels = Scaled(options, 64);
  const int units[] = {3, 4, 6, 3};
  for (int block = 1; block <= 4; ++block) {
    const int64_t depth = Scaled(options, int64_t{32} << block);
    for (int unit = 1; unit <= units[block - 1]; ++unit) {
      // In every block but the last, the last unit is the strided one.
      const bool strided = unit == units[block - 1] && block < 4;
      last = AddBottleneck(absl::StrCat("block", block, "/unit_", unit, "/bottleneck_v1"), depth,
                           /*projects=*/channels != 4 * depth, strided, last, &net);
      channels = 4 * depth;
    }
  }
  net.Mean("pool5", channels);
  net.Logits("logits", options.classes);
  net.Flatten("SpatialSqueeze");
  AddLoss("kernel$", 0.0001f, &model);
  return model;
}

absl::StatusOr<ModelConfig> MobilenetV1(const NetOptions& options) {
  RETURN_IF_ERROR(Check(options));
  constexpr int64_t kLeastFilters = 8;
  ModelConfig model;
  const config::v1::Layer::BatchNorm batch_norm = BatchNorm(0.9997f, 0.001f, /*scale=*/true);
  NetBuilder net({"MobilenetV1", TruncatedNormal(0.09f), &batch_norm, config::v1::RELU6}, &model);
  net.Conv("Conv2d_0", "", Scaled(options, 32, kLeastFilters), {3, 2, SAME});
  const std::pair<int64_t, int64_t> layers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                                {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  int number = 0;
  for (const auto& [filters, stride] : layers) {
    const std::string name = absl::StrCat("Conv2d_", ++number);
    net.Depthwise(name + "_depthwise", "", {3, stride, SAME});
    net.Conv(name + "_pointwise", "", Scaled(options, filters, kLeastFilters), {1});
  }
  net.Mean("Logits/AvgPool_1a", Scaled(options, 1024, kLeastFilters));
  net.Dropout("Logits/Dropout_1b", 0.001f);
  net.Logits("Logits/Conv2d_1c_1x1", options.classes);
  net.Flatten("Logits/SpatialSqueeze");
  // The original exempts depthwise kernels from weight decay.
  AddLoss("(_pointwise|Conv2d_0|Conv2d_1c_1x1)/kernel$", 0.00004f, &model);
  return model;
}

std::vector<std::string> NetNames() { return {"vgg_16", "inception_v1", "resnet_v1_50", "mobilenet_v1"}; }

absl::StatusOr<ModelConfig> NetByName(absl::string_view name, const NetOptions& options) {
  if (name == "vgg_16") return Vgg16(options);
  if (name == "inception_v1") return InceptionV1(options);
  if (name == "resnet_v1_50") return ResnetV1_50(options);
  if (name == "mobilenet_v1") return MobilenetV1(options);
  return absl::NotFoundError(
      absl::StrCat("there is no net \"", name, "\", there are ", absl::StrJoin(NetNames(), ", ")));
}

}  // namespace lockstep::train::slim::nets
