// Prints a digest of each kernel's results for fixed inputs, one per line. The output must be the same on every
// processor. Depends only on the kernels and the standard library, so that it can be compiled separately for another
// architecture (tools/check_arm.sh).
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/kernels/elementwise.h"
#include "lockstep/kernels/images/depthwise.h"
#include "lockstep/kernels/images/pool.h"
#include "lockstep/kernels/math.h"
#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/nn/batch_norm.h"
#include "lockstep/kernels/nn/dropout.h"
#include "lockstep/kernels/nn/layer_norm.h"
#include "lockstep/kernels/nn/local_response.h"
#include "lockstep/kernels/nn/losses.h"
#include "lockstep/kernels/normal_numbers.h"
#include "lockstep/kernels/normalize.h"
#include "lockstep/kernels/philox_blocks.h"
#include "lockstep/kernels/portable_math.h"
#include "lockstep/kernels/products/convolution.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/kernels/rounding.h"
#include "lockstep/kernels/update_rules.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {
namespace {

// Computes FNV-1a over bytes.
class Digest {
 public:
  void Add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 1099511628211u;
  }
  void Add(const std::vector<uint16_t>& values) { Add(values.data(), values.size() * sizeof(uint16_t)); }
  // Treats all NaNs as equal, because their signs differ between processors.
  void Add(const std::vector<float>& values) {
    for (const float x : values) {
      const float same = x == x ? x : 0x1.5p100f;
      Add(&same, sizeof(same));
    }
  }
  void Add(const std::vector<double>& values) {
    for (const double x : values) {
      const double same = x == x ? x : 0x1.5p100;
      Add(&same, sizeof(same));
    }
  }
  void Add(const std::vector<uint32_t>& values) { Add(values.data(), values.size() * sizeof(uint32_t)); }
  void Print(const char* name) const { std::printf("%s %016" PRIx64 "\n", name, hash_); }

 private:
  uint64_t hash_ = 14695981039346656037u;
};

// Returns numbers in [-2, 2), with a few that are far larger or smaller.
std::vector<float> Numbers(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  uint64_t state = seed * 6364136223846793005u + 1442695040888963407u;
  for (float& x : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<int32_t>(state >> 32)) * (1.0f / 1073741824.0f);
    if (state % 61 == 0) x *= 1e5f;
    if (state % 67 == 0) x *= 1e-6f;
  }
  return values;
}

std::vector<float> Positive(std::vector<float> values) {
  for (float& x : values) x = x < 0 ? -x : x;
  return values;
}

// Memory aligned to 64 bytes.
class Aligned {
 public:
  explicit Aligned(int64_t size) : memory_(size + 16) {}
  float* data() {
    return memory_.data() + (16 - reinterpret_cast<uintptr_t>(memory_.data()) / sizeof(float) % 16) % 16;
  }

 private:
  std::vector<float> memory_;
};

void Products() {
  Digest digest;
  const int64_t sizes[][3] = {{1, 784, 10}, {3, 16, 16}, {13, 805, 20}, {64, 256, 130}, {193, 30, 7}, {29, 401, 65}};
  for (const auto& [rows, inner, columns] : sizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const std::vector<float> a = Numbers(rows * inner, 1);
        const std::vector<float> b = Numbers(inner * columns, 2);
        std::vector<float> c(rows * columns);
        Multiply(a_transposed ? Transposed(a.data(), rows, inner) : RowMajor(a.data(), rows, inner),
                 b_transposed ? Transposed(b.data(), inner, columns) : RowMajor(b.data(), inner, columns), c.data(),
                 columns);
        digest.Add(c);
      }
    }
  }
  digest.Print("products");
}

// Computes a matrix product in parts, as several threads do.
void ProductParts() {
  const int64_t rows = 70, inner = 450, columns = 90;
  const std::vector<float> a = Numbers(rows * inner, 32);
  const std::vector<float> b = Numbers(inner * columns, 33);
  Digest digest;
  for (const bool b_transposed : {false, true}) {
    const Matrix right = b_transposed ? Transposed(b.data(), inner, columns) : RowMajor(b.data(), inner, columns);
    std::vector<float> c(rows * columns);
    for (const Tile& tile : {Tile{0, 0, 3, 90}, Tile{3, 0, 67, 17}, Tile{3, 17, 50, 60}}) {
      MultiplyPart(RowMajor(a.data(), rows, inner), right, tile, c.data(), columns);
    }
    digest.Add(c);
  }
  digest.Print("product_parts");
}

void Convolutions() {
  Digest values, gradients;
  for (const int64_t channels : {1, 5, 32}) {
    for (const int64_t filters : {1, 7, 40}) {
      const int64_t height = 15, width = 17, row = (width + 2) * channels;
      const std::vector<float> images = Numbers(2 * (height + 2) * row, 3);
      const TileElements patch{3, 3 * channels, 1, row};
      const std::vector<float> kernel = Numbers(9 * channels * filters, 4);
      Aligned panels(9 * channels * PaddedColumns(filters));
      PackPanels(RowMajor(kernel.data(), 9 * channels, filters), panels.data());
      std::vector<float> result(height * width * filters);
      MultiplyPatches(images.data(), {height, width, row, channels}, patch, panels.data(), filters, kernel.data(),
                      result.data(), {height, width, width * filters, filters});
      values.Add(result);
      const std::vector<float> dy = Numbers(2 * height * width * filters, 5);
      const KernelGradientInput input{images.data(), (height + 2) * row, dy.data(), 2,    height, width,
                                      filters,       channels,           row,       patch};
      std::vector<float> gradient(9 * channels * filters);
      KernelGradientBlocks(input, 0, NumKernelGradientBlocks(input), gradient.data());
      gradients.Add(gradient);
    }
  }
  values.Print("convolutions");
  gradients.Print("kernel_gradients");
}

// Uses panels packed in two parts. Their layout depends on the target, but the results do not.
void PackedParts() {
  const int64_t rows = 7, filters = 37, pixels = 23;
  const std::vector<float> kernel = Numbers(rows * filters, 34);
  const std::vector<float> images = Numbers(pixels + rows - 1, 35);
  Digest digest;
  for (const int64_t first : {0, 3, 7}) {
    Aligned panels(rows * PaddedColumns(filters));
    PackPanelRows({kernel.data(), first, filters, rows, true}, 0, rows, panels.data());
    PackPanelRows({kernel.data() + first, rows - first, filters, rows, true}, first, rows, panels.data());
    std::vector<float> result(pixels * filters);
    MultiplyPatches(images.data(), {1, pixels, 0, 1}, {1, rows, 1, 0}, panels.data(), filters, nullptr, result.data(),
                    {1, pixels, 0, filters});
    digest.Add(result);
  }
  digest.Print("packed_parts");
}

void Functions() {
  const std::vector<float> x = Numbers(4001, 6);
  std::vector<float> y(x.size());
  const auto print = [&](const char* name, void (*f)(int64_t, const float*, float*), const std::vector<float>& from) {
    f(static_cast<int64_t>(from.size()), from.data(), y.data());
    Digest digest;
    digest.Add(y);
    digest.Print(name);
  };
  print("exp", ExpOf, x);
  print("log", LogOf, Positive(x));
  print("tanh", TanhOf, x);
  print("sigmoid", SigmoidOf, x);
}

// Tests double-precision functions and powers of floats, including arguments at the ends of the range and beyond.
void PortableFunctions() {
  Digest digest;
  std::vector<double> x = {0.0,     -0.0,   1.0,    -1.0,      5e-324,     1e-310,
                           1.7e308, 709.78, -745.1, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0};
  for (const float number : Numbers(2003, 31)) x.push_back(static_cast<double>(number) * (1 + 0x1p-30 * number));
  std::vector<double> y(x.size());
  for (double (*const f)(double) :
       {portable::Exp, portable::Expm1, portable::Log, portable::Log1p, portable::Sin, portable::Cos, portable::Tanh}) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
    digest.Add(y);
  }
  for (const double power : {0.7, -3.0, 150.5}) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = portable::Pow(x[i] < 0 && power != -3.0 ? -x[i] : x[i], power);
    digest.Add(y);
    std::vector<float> floats(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      floats[i] = portable::Pow(static_cast<float>(x[i] < 0 ? -x[i] : x[i]), static_cast<float>(power));
    }
    digest.Add(floats);
  }
  digest.Print("portable_functions");
}

constexpr ActivationType kActivations[] = {ActivationType::kIdentity,  ActivationType::kRelu,
                                           ActivationType::kLeakyRelu, ActivationType::kTanh,
                                           ActivationType::kSigmoid,   ActivationType::kGelu};

void Activations() {
  const int64_t rows = 31, columns = 77;
  const std::vector<float> x = Numbers(rows * columns, 7);
  const std::vector<float> dy = Numbers(rows * columns, 8);
  Digest digest;
  for (const ActivationType type : kActivations) {
    const ActivationKernel f{type, 0.2f};
    std::vector<float> sum = x, y(x.size()), dx(x.size()), sums(columns);
    AddBiasAndActivateRows(f, rows, columns, columns, dy.data(), sum.data(), y.data());
    digest.Add(y);
    ActivationGradientAndSums(f, rows, columns, x.data(), dy.data(), dx.data(), sums.data());
    digest.Add(dx);
    digest.Add(sums);
  }
  digest.Print("activations");
}

void PlainActivations() {
  const int64_t rows = 13, columns = 77, size = rows * columns;
  const std::vector<float> x = Numbers(size, 36);
  Digest digest;
  for (const ActivationType type : kActivations) {
    const ActivationKernel f{type, 0.2f};
    std::vector<float> y(size), dx(size), sums(columns);
    ApplyActivation(f, size, x.data(), y.data());
    ApplyActivationGradient(f, size, type == ActivationType::kGelu ? x.data() : y.data(), x.data(), dx.data());
    SumColumns(rows, columns, dx.data(), sums.data());
    for (const std::vector<float>* part : {&y, &dx, &sums}) digest.Add(*part);
  }
  digest.Print("plain_activations");
}

void Inputs() {
  std::vector<uint8_t> bytes(1001);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  std::vector<float> out(bytes.size());
  Digest digest;
  for (const float stddev : {1.0f, 0.353f, 1e-39f}) {
    NormalizeBytes({stddev == 1.0f ? 0.0f : 0.286f, stddev}, 1001, bytes.data(), out.data());
    digest.Add(out);
  }
  out = Numbers(1001, 9);
  NormalizeFloats(0.3f, 1.7f, 1001, out.data());
  digest.Add(out);
  digest.Print("inputs");
}

// The first `states` states of the rule begin with positive values.
template <typename Rule>
void AddUpdates(const Rule& rule, int states, Digest* digest) {
  const int64_t n = 1003;
  const std::vector<float> gradient = Numbers(n, 10);
  std::vector<float> value = Numbers(n, 11);
  std::vector<std::vector<float>> state(kMostUpdateStates, Positive(Numbers(n, 12)));
  for (const float divisor : {3.0f, 4.0f}) {
    UpdateArrays arrays{n, gradient.data(), divisor, value.data(), value.data(), {}, {}};
    for (int k = 0; k < states; ++k) arrays.state_in[k] = arrays.state_out[k] = state[k].data();
    Update(rule, arrays);
  }
  digest->Add(value);
  for (int k = 0; k < states; ++k) digest->Add(state[k]);
}

void Updates() {
  Digest digest;
  AddUpdates(SgdRule{0.1f}, 0, &digest);
  for (const bool nesterov : {false, true}) AddUpdates(MomentumRule{0.1f, 0.9f, nesterov}, 1, &digest);
  AddUpdates(AdagradRule{0.1f}, 1, &digest);
  AddUpdates(AdadeltaRule{0.1f, 0.95f, 1e-6f}, 2, &digest);
  AddUpdates(RmsPropRule{0.1f, 0.9f, 0.5f, 1e3f, true}, 3, &digest);
  AddUpdates(RmsPropRule{0.1f, 0.9f, 0.5f, 1e-6f, false}, 2, &digest);
  for (const float decay : {0.0f, 0.01f}) AddUpdates(AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, decay, 0.1f}, 2, &digest);
  AddUpdates(FtrlRule{0.1f, 0.3f, 0.2f}, 2, &digest);
  std::vector<float> average = Numbers(1003, 13);
  UpdateMovingAverage(1003, 0.01f, Numbers(1003, 14).data(), average.data(), average.data());
  digest.Add(average);
  digest.Print("updates");
}

void MoreUpdates() {
  Digest digest;
  AddUpdates(SgdRule{0.1f, 0.01f}, 0, &digest);
  AddUpdates(MomentumRule{0.1f, 0.9f, false, 0.01f, 0.8f}, 1, &digest);
  AddUpdates(AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f, true}, 3, &digest);
  AddUpdates(ProximalSgdRule{0.1f, 0.3f, 0.2f}, 0, &digest);
  AddUpdates(ProximalAdagradRule{0.1f, 0.3f, 0.2f}, 1, &digest);
  AddUpdates(AdagradDaRule{0.1f, 0.3f, 0.2f}, 2, &digest);
  for (const bool decouples : {false, true}) {
    AddUpdates(NadamRule{0.01f, 0.1f, 0.9f, 0.99f, 1e-7f, 0.01f, decouples, 0.1f}, 2, &digest);
  }
  AddUpdates(LionRule{0.1f, 0.9f, 0.99f, 0.01f}, 1, &digest);
  digest.Print("more_updates");
}

void Rounding() {
  Digest digest;
  for (const ShortFloat type : {ShortFloat::kBfloat16, ShortFloat::kHalf}) {
    std::vector<float> values = Numbers(1003, 15);
    std::vector<uint16_t> numbers(values.size());
    EncodeShort(type, 1003, values.data(), numbers.data());
    digest.Add(numbers);
    std::vector<float> sum = Numbers(1003, 16);
    DecodeAndAddShort(type, 1003, reinterpret_cast<const char*>(numbers.data()), sum.data());
    AddFloats(1003, reinterpret_cast<const char*>(values.data()), sum.data());
    digest.Add(sum);
    RoundToShort(type, 1003, values.data());
    digest.Add(values);
  }
  digest.Print("rounding");
}

void Decoding() {
  std::vector<uint16_t> numbers(65536);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint16_t>(i);
  std::vector<float> out(numbers.size());
  Digest digest;
  for (const ShortFloat type : {ShortFloat::kBfloat16, ShortFloat::kHalf}) {
    DecodeShort(type, 65536, reinterpret_cast<const char*>(numbers.data()), out.data());
    digest.Add(out);
    // Also tests which blocks contain only finite numbers.
    std::vector<uint32_t> finite;
    for (int64_t begin = 0; begin < 65536; begin += 37) {
      finite.push_back(AllValuesFinite(std::min<int64_t>(37, 65536 - begin), &out[begin]) ? 1 : 0);
    }
    digest.Add(finite);
  }
  digest.Print("decoding");
}

void Losses() {
  Digest digest;
  for (const int64_t size : {1, 10, 33}) {
    const std::vector<float> x = Numbers(size, 17);
    const std::vector<float> targets = Positive(Numbers(size, 18));
    std::vector<float> all(size + 1);
    const LossRow row{size, x.data(), 0.25f, all.data()};
    for (const float smoothing : {0.0f, 0.1f}) {
      all[size] = SoftmaxLossOfLabel(row, smoothing, 0);
      digest.Add(all);
      all[size] = SoftmaxLossOfTargets(row, smoothing, targets.data());
      digest.Add(all);
    }
    for (const ElementwiseLossType type :
         {ElementwiseLossType::kSigmoidCrossEntropy, ElementwiseLossType::kSquaredError,
          ElementwiseLossType::kAbsoluteDifference, ElementwiseLossType::kHuber, ElementwiseLossType::kHinge}) {
      all[size] = ElementwiseLossOfTargets({type, 0.7f}, row, targets.data());
      digest.Add(all);
      all[size] = ElementwiseLossOfLabel({type, 0.7f}, row, 0);
      digest.Add(all);
    }
  }
  digest.Print("losses");
}

// All values are probabilities with finite logarithms.
void LogLosses() {
  Digest digest;
  for (const int64_t size : {1, 10, 33}) {
    std::vector<float> x = Positive(Numbers(size, 17));
    for (float& p : x) p = p / (1 + p);
    const std::vector<float> targets = Positive(Numbers(size, 18));
    std::vector<float> all(size + 1);
    const LossRow row{size, x.data(), 0.25f, all.data()};
    all[size] = ElementwiseLossOfTargets({ElementwiseLossType::kLogLoss, 0, 1e-7f}, row, targets.data());
    digest.Add(all);
    all[size] = ElementwiseLossOfLabel({ElementwiseLossType::kLogLoss, 0, 1e-7f}, row, 0);
    digest.Add(all);
  }
  digest.Print("log_losses");
}

void BatchNorm() {
  const int64_t rows = 19, columns = 43;
  const std::vector<float> x = Numbers(rows * columns, 19);
  const std::vector<float> channels = Numbers(5 * columns, 20);
  const ChannelNumbers numbers{&channels[0], &channels[columns], &channels[2 * columns]};
  Digest digest;
  for (const ActivationType type : {ActivationType::kIdentity, ActivationType::kRelu, ActivationType::kTanh}) {
    const ActivationKernel f{type, 0};
    std::vector<float> y(x.size()), dy = Numbers(rows * columns, 21), dx(x.size()), sums(4 * columns);
    NormalizeColumns(f, rows, columns, numbers, x.data(), y.data());
    ColumnMeansAndSquares(rows, columns, x.data(), &sums[0], &sums[columns]);
    NormInputGradient(f, rows, columns, numbers, &channels[3 * columns], &channels[4 * columns], x.data(), dy.data(),
                      dx.data());
    const NormGradientMode mode =
        type == ActivationType::kTanh ? NormGradientMode::kFromOutputAndStore : NormGradientMode::kFromInput;
    SumNormGradients(f, mode, rows, columns, numbers, x.data(), y.data(), dy.data(), &sums[2 * columns],
                     &sums[3 * columns]);
    for (const std::vector<float>* part : {&y, &dx, &dy, &sums}) digest.Add(*part);
  }
  digest.Print("batch_norm");
}

// Tests every activation with each way to compute its gradient.
void BatchNormActivations() {
  const int64_t rows = 19, columns = 43;
  const std::vector<float> x = Numbers(rows * columns, 37);
  const std::vector<float> channels = Numbers(5 * columns, 38);
  const ChannelNumbers numbers{&channels[0], &channels[columns], &channels[2 * columns]};
  Digest digest;
  for (const ActivationType type : kActivations) {
    const ActivationKernel f{type, 0.2f};
    std::vector<float> y(x.size()), dx(x.size());
    NormalizeColumns(f, rows, columns, numbers, x.data(), y.data());
    digest.Add(y);
    for (const NormGradientMode mode :
         {NormGradientMode::kFromInput, NormGradientMode::kFromInputAndStore, NormGradientMode::kFromOutputAndStore}) {
      std::vector<float> dy = Numbers(rows * columns, 39), sums(2 * columns);
      SumNormGradients(f, mode, rows, columns, numbers, x.data(), y.data(), dy.data(), &sums[0], &sums[columns]);
      NormInputGradient(f, rows, columns, numbers, &channels[3 * columns], &channels[4 * columns], x.data(), dy.data(),
                        dx.data());
      for (const std::vector<float>* part : {&dy, &sums, &dx}) digest.Add(*part);
    }
  }
  digest.Print("batch_norm_activations");
}

void Pools() {
  const int64_t channels = 37;
  const WindowGeometry geometry{{9, 3, 2, 1, 5}, {7, 2, 2, 0, 3}, channels};
  const std::vector<float> x = Numbers(9 * 7 * channels, 22);
  const std::vector<float> dy = Numbers(5 * 3 * channels, 23);
  std::vector<int32_t> winners(dy.size());
  std::vector<float> y(dy.size()), dx(x.size());
  Digest digest;
  MaxPoolImage(geometry, x.data(), winners.data(), y.data());
  MaxPoolGradient(geometry, winners.data(), dy.data(), dx.data());
  digest.Add(y);
  digest.Add(dx);
  AveragePoolImage(geometry, x.data(), y.data());
  AveragePoolGradient(geometry, dy.data(), dx.data());
  digest.Add(y);
  digest.Add(dx);
  digest.Print("pools");
}

void RowMeans() {
  const std::vector<float> x = Numbers(49 * 37, 24);
  std::vector<float> y(37), dx(x.size());
  MeanOfRows(49, 37, x.data(), y.data());
  MeanOfRowsGradient(49, 37, y.data(), dx.data());
  Digest digest;
  digest.Add(y);
  digest.Add(dx);
  digest.Print("row_means");
}

void RandomNumbers() {
  Digest numbers, dropped, normal;
  for (const uint64_t first : {0ull, 0xFFFFFFFBull}) {
    std::vector<uint32_t> bits(1008);
    FillPhiloxBlocks(7, 8, first, 1008, bits.data());
    numbers.Add(bits);
    const std::vector<float> x = Numbers(1003, 25);
    std::vector<float> y(x.size()), dx(x.size());
    std::vector<uint8_t> kept(126);
    DropElements(DropoutRule{1 << 22, 4.0f / 3}, 1003, bits.data(), x.data(), kept.data(), y.data());
    DropoutGradient(4.0f / 3, 1003, kept.data(), x.data(), dx.data());
    dropped.Add(kept.data(), kept.size());
    dropped.Add(y);
    dropped.Add(dx);
    std::vector<double> cosines(kNormalPairs), sines(kNormalPairs);
    for (int i = 0; i + 2 * kNormalPairs <= 1008; i += 2 * kNormalPairs) {
      NormalPairs(&bits[i], cosines.data(), sines.data());
      normal.Add(cosines);
      normal.Add(sines);
    }
  }
  numbers.Print("philox");
  dropped.Print("dropout");
  normal.Print("normal_numbers");
}

void LayerNorm() {
  Digest digest;
  for (const int64_t columns : {5, 43, 131}) {
    const int64_t rows = 7;
    const std::vector<float> x = Numbers(rows * columns, 26);
    const std::vector<float> dy = Numbers(rows * columns, 27);
    const std::vector<float> gamma = Numbers(columns, 28);
    std::vector<float> means(rows), inverses(rows), y(x.size()), dx(x.size()), products(columns), sums(columns);
    NormalizeRows(rows, columns, 1e-5f, gamma.data(), dy.data(), x.data(), means.data(), inverses.data(), y.data());
    const RowMoments moments{means.data(), inverses.data()};
    NormalizeRowsGradient(rows, columns, gamma.data(), moments, x.data(), dy.data(), dx.data());
    SumRowNormGradients(rows, columns, moments, x.data(), dy.data(), products.data(), sums.data());
    for (const std::vector<float>* part : {&means, &inverses, &y, &dx, &products, &sums}) digest.Add(*part);
  }
  digest.Print("layer_norm");
}

void Elementwise() {
  const std::vector<float> w = Numbers(1003, 29);
  std::vector<float> sum = Numbers(1003, 30);
  Digest digest;
  AddElements(1003, w.data(), sum.data(), sum.data());
  for (const float l1 : {0.0f, 0.3f}) AddPenaltyGradient(l1, 0.7f, 1003, w.data(), sum.data());
  digest.Add(sum);
  const PenaltySums sums = SumPenalties(1003, w.data());
  digest.Add(std::vector<float>{sums.absolute, sums.squares});
  digest.Print("elementwise");
}

// Tests zeros, infinities, NaN and numbers at the ends of the range, in every position of a vector.
void SpecialNumbers() {
  const float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  const float special[] = {0.0f,      -0.0f,    infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
                           1e-45f,    -1e-45f,  3e-39f,   1.2e-38f,  largest,
                           -largest,  88.8f,    -88.8f,   -104.0f,   7.99f,
                           65519.99f, 65520.0f, 1e20f,    1e-20f};
  const int64_t count = std::size(special), size = 17 * count + 5;
  std::vector<float> x(size), other(size), y(size);
  for (int64_t i = 0; i < size; ++i) {
    x[i] = special[i % count];
    other[i] = special[(i * 7 + i / count) % count];
  }
  Digest digest;
  for (void (*const f)(int64_t, const float*, float*) : {ExpOf, LogOf, TanhOf, SigmoidOf}) {
    f(size, x.data(), y.data());
    digest.Add(y);
  }
  for (const ActivationType type : kActivations) {
    ApplyActivation({type, 0.2f}, size, x.data(), y.data());
    digest.Add(y);
    ApplyActivationGradient({type, 0.2f}, size, x.data(), other.data(), y.data());
    digest.Add(y);
  }
  AddElements(size, x.data(), other.data(), y.data());
  AddPenaltyGradient(0.3f, 0.7f, size, x.data(), y.data());
  digest.Add(y);
  for (const ShortFloat type : {ShortFloat::kBfloat16, ShortFloat::kHalf}) {
    std::vector<uint16_t> numbers(size);
    EncodeShort(type, size, x.data(), numbers.data());
    digest.Add(numbers);
  }
  const WindowGeometry geometry{{1, 1, 1, 0, 1}, {count, 2, 1, 0, count - 1}, 17};
  std::vector<int32_t> winners((count - 1) * 17);
  MaxPoolImage(geometry, x.data(), winners.data(), y.data());
  digest.Add(y);
  digest.Add(winners.data(), winners.size() * sizeof(int32_t));
  digest.Print("special_numbers");
}

void Relu6() {
  const std::vector<float> x = Numbers(1003, 60);
  std::vector<float> y(x.size()), dx(x.size());
  const ActivationKernel f{ActivationType::kRelu6};
  ApplyActivation(f, 1003, x.data(), y.data());
  ApplyActivationGradient(f, 1003, y.data(), x.data(), dx.data());
  Digest digest;
  digest.Add(y);
  digest.Add(dx);
  digest.Print("relu6");
}

void Depthwise() {
  const int64_t channels = 37;
  const WindowGeometry geometry{{9, 3, 2, 1, 5}, {7, 2, 1, 0, 6}, channels};
  const std::vector<float> x = Numbers(2 * 9 * 7 * channels, 61), dy = Numbers(2 * 5 * 6 * channels, 62);
  const std::vector<float> w = Numbers(3 * 2 * channels, 63), bias = Numbers(channels, 64);
  std::vector<float> y(5 * 6 * channels), dx(9 * 7 * channels), dw(w.size());
  Digest digest;
  for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
    DepthwiseImage(geometry, x.data(), w.data(), b, y.data());
    digest.Add(y);
  }
  DepthwiseInputGradient(geometry, dy.data(), w.data(), dx.data());
  DepthwiseKernelGradient(geometry, 2, x.data(), dy.data(), 0, 6, dw.data());
  digest.Add(dx);
  digest.Add(dw);
  digest.Print("depthwise");
}

void LocalResponses() {
  const int64_t rows = 5, columns = 77;
  const std::vector<float> x = Numbers(rows * columns, 65), dy = Numbers(rows * columns, 66);
  std::vector<float> scales(x.size()), y(x.size()), dx(x.size());
  Digest digest;
  for (const LocalResponse& f : {LocalResponse{5, 1, 1e-4f, 0.75f}, LocalResponse{0, 2, 1, 0.5f}}) {
    NormalizeLocalResponse(f, rows, columns, x.data(), scales.data(), y.data());
    LocalResponseGradient(f, rows, columns, x.data(), scales.data(), y.data(), dy.data(), dx.data());
    for (const std::vector<float>* part : {&scales, &y, &dx}) digest.Add(*part);
  }
  digest.Print("local_responses");
}

int Run() {
  const std::string error = TargetError();
  if (!error.empty()) {
    std::fprintf(stderr, "kernel_digests: %s\n", error.c_str());
    return 2;
  }
  std::fprintf(stderr, "%s\n", TargetName(CurrentTarget()));
  Products();
  ProductParts();
  Convolutions();
  PackedParts();
  Functions();
  PortableFunctions();
  Activations();
  PlainActivations();
  Inputs();
  Updates();
  MoreUpdates();
  Rounding();
  Decoding();
  Losses();
  LogLosses();
  BatchNorm();
  BatchNormActivations();
  Pools();
  RowMeans();
  RandomNumbers();
  LayerNorm();
  Elementwise();
  SpecialNumbers();
  Relu6();
  Depthwise();
  LocalResponses();
  return 0;
}

}  // namespace
}  // namespace lockstep

int main() { return lockstep::Run(); }
