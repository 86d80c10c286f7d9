// The layers of kernels.h other than those for images.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/capi/arrays.h"
#include "lockstep/capi/kernels.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/version.h"
#include "lockstep/kernels/elementwise.h"
#include "lockstep/kernels/math.h"
#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/nn/batch_norm.h"
#include "lockstep/kernels/nn/dropout.h"
#include "lockstep/kernels/nn/layer_norm.h"
#include "lockstep/kernels/philox_blocks.h"
#include "lockstep/worker/nn/compute/activation.h"
#include "lockstep/worker/nn/compute/column_moments.h"
#include "lockstep/worker/nn/compute/gemm.h"

namespace lockstep {
namespace {

// Numbers of rows or elements computed together. Changing them changes the low-order bits of sums.
constexpr int64_t kNormRows = 256;
constexpr int64_t kLayerNormRows = 64;
constexpr int64_t kDropped = 4096;

absl::StatusOr<ActivationKernel> ReadActivation(int activation, float slope) {
  switch (activation) {
    case LOCKSTEP_RELU:
      return ActivationKernel{ActivationType::kRelu};
    case LOCKSTEP_RELU6:
      return ActivationKernel{ActivationType::kRelu6};
    case LOCKSTEP_LEAKY_RELU:
      if (slope >= 0 && slope <= 1) return ActivationKernel{ActivationType::kLeakyRelu, slope};
      return absl::InvalidArgumentError(absl::StrCat("slope is ", slope, ", must be in [0, 1]"));
    case LOCKSTEP_TANH:
      return ActivationKernel{ActivationType::kTanh};
    case LOCKSTEP_SIGMOID:
      return ActivationKernel{ActivationType::kSigmoid};
    case LOCKSTEP_GELU:
      return ActivationKernel{ActivationType::kGelu};
    default:
      return absl::InvalidArgumentError(absl::StrCat("there is no activation ", activation));
  }
}

// Reads the activation of a batch normalization. Only activations whose gradient can also be computed from their input
// are allowed.
absl::StatusOr<ActivationKernel> ReadNormActivation(int activation) {
  if (activation == 0) return ActivationKernel{};
  if (activation == LOCKSTEP_RELU || activation == LOCKSTEP_RELU6) return ReadActivation(activation, 0);
  return absl::InvalidArgumentError(absl::StrCat("batch norm has no activation ", activation));
}

absl::Status RequireEpsilon(float epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("epsilon is ", epsilon, ", must be 0 or more and finite"));
}

absl::Status RequireRow(int64_t rows) {
  return rows > 0 ? absl::OkStatus() : absl::InvalidArgumentError("rows is 0, must be at least 1");
}

// y may be x.
void SoftmaxOfRow(int64_t columns, const float* x, float* y) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < columns; ++c) largest = x[c] > largest ? x[c] : largest;
  for (int64_t c = 0; c < columns; ++c) y[c] = x[c] - largest;
  ExpOf(columns, y, y);
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    // ExpOf returns a subnormal number instead of 0 for -infinity.
    if (y[c] < std::numeric_limits<float>::min()) y[c] = 0;
    sum += y[c];
  }
  const auto divisor = static_cast<float>(sum);
  for (int64_t c = 0; c < columns; ++c) y[c] /= divisor;
}

// The parameters that normalize each channel.
struct Channels {
  Channels(int64_t columns, float epsilon, const float* mean, const float* variance, const float* gamma,
           const float* beta)
      : mean(mean), inverse(columns), scale(columns), shift(columns) {
    for (int64_t c = 0; c < columns; ++c) {
      inverse[c] = 1.0f / std::sqrt(variance[c] + epsilon);
      scale[c] = gamma == nullptr ? inverse[c] : gamma[c] * inverse[c];
      shift[c] = beta == nullptr ? 0.0f : beta[c];
    }
  }
  ChannelNumbers numbers() const { return {mean, scale.data(), shift.data()}; }

  const float* const mean;
  std::vector<float> inverse, scale, shift;
};

// With dz = dy * f'(z): products[c] = the sum of dz * (x - mean) * inverse, and sums[c] = the sum of dz.
void SumNormProducts(const ActivationKernel& f, int64_t rows, int64_t columns, const Channels& channels, const float* x,
                     const float* dy, float* products, float* sums) {
  std::vector<double> product(columns), sum(columns);
  std::vector<float> block(2 * columns);
  for (int64_t begin = 0; begin < rows; begin += kNormRows) {
    const int64_t at = begin * columns;
    // The cast is safe, because this mode only reads dy.
    SumNormGradients(f, NormGradientMode::kFromInput, std::min(kNormRows, rows - begin), columns, channels.numbers(),
                     x + at, nullptr, const_cast<float*>(dy) + at, block.data(), block.data() + columns);
    for (int64_t c = 0; c < columns; ++c) {
      product[c] += block[c];
      sum[c] += block[columns + c];
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    products[c] = static_cast<float>(product[c] * channels.inverse[c]);
    sums[c] = static_cast<float>(sum[c]);
  }
}

// products[c] = the sum of dy * xhat, sums[c] = the sum of dy.
void SumRowNormProducts(int64_t rows, int64_t columns, const RowMoments& moments, const float* x, const float* dy,
                        float* products, float* sums) {
  std::fill_n(products, columns, 0.0f);
  std::fill_n(sums, columns, 0.0f);
  std::vector<float> block(2 * columns);
  for (int64_t begin = 0; begin < rows; begin += kLayerNormRows) {
    const int64_t at = begin * columns;
    SumRowNormGradients(std::min(kLayerNormRows, rows - begin), columns,
                        {moments.means + begin, moments.inverses + begin}, x + at, dy + at, block.data(),
                        block.data() + columns);
    AddElements(columns, products, block.data(), products);
    AddElements(columns, sums, block.data() + columns, sums);
  }
}

// Returns `values` or, if it is null, `columns` copies of `otherwise`, which are stored in `memory`.
const float* OrConstant(const float* values, int64_t columns, float otherwise, std::vector<float>* memory) {
  if (values != nullptr) return values;
  memory->assign(columns, otherwise);
  return memory->data();
}

DropoutRule RuleOf(float rate) {
  return {static_cast<int32_t>(std::ceil(static_cast<double>(rate) * (1 << 24))),
          rate == 1 ? 0.0f : 1.0f / (1.0f - rate)};
}

}  // namespace

extern "C" {

int lockstep_kernels_version(void) { return lockstep::kLayersVersion; }

int lockstep_linear(int64_t rows, int64_t inputs, int64_t outputs, const float* x, const float* weight,
                    const float* bias, float* y) {
  return Compute([&](ComputeContext* compute) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, inputs}));
    RETURN_IF_ERROR(RequireArray(weight, "weight", {outputs, inputs}));
    RETURN_IF_ERROR(RequireArray(y, "y", {rows, outputs}));
    ParallelMultiply(compute, RowMajor(x, rows, inputs), Transposed(weight, inputs, outputs), y, outputs,
                     [&](const Tile& tile) { AddBiasAndActivate({}, tile, outputs, bias, y, y); });
    return absl::OkStatus();
  });
}

int lockstep_linear_gradient(int64_t rows, int64_t inputs, int64_t outputs, const float* x, const float* weight,
                             const float* dy, float* dx, float* dweight, float* dbias) {
  return Compute([&](ComputeContext* compute) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, inputs}));
    RETURN_IF_ERROR(RequireArray(weight, "weight", {outputs, inputs}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {rows, outputs}));
    if (dbias != nullptr) SumAllRows(rows, outputs, dy, dbias);
    if (dweight != nullptr) {
      ParallelMultiply(compute, Transposed(dy, outputs, rows), RowMajor(x, rows, inputs), dweight, inputs);
    }
    if (dx != nullptr) {
      ParallelMultiply(compute, RowMajor(dy, rows, outputs), RowMajor(weight, outputs, inputs), dx, inputs);
    }
    return absl::OkStatus();
  });
}

int lockstep_activate(int activation, float slope, int64_t size, const float* x, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const ActivationKernel f, ReadActivation(activation, slope));
    RETURN_IF_ERROR(RequireArray(x, "x", {size}));
    RETURN_IF_ERROR(RequireArray(y, "y", {size}));
    ApplyActivation(f, size, x, y);
    return absl::OkStatus();
  });
}

int lockstep_activation_gradient(int activation, float slope, int64_t size, const float* value, const float* dy,
                                 float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const ActivationKernel f, ReadActivation(activation, slope));
    RETURN_IF_ERROR(RequireArray(value, "value", {size}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {size}));
    RETURN_IF_ERROR(RequireArray(dx, "dx", {size}));
    ApplyActivationGradient(f, size, value, dy, dx);
    return absl::OkStatus();
  });
}

int lockstep_softmax(int64_t rows, int64_t columns, const float* x, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(y, "y", {rows, columns}));
    for (int64_t i = 0; i < rows * columns; i += columns) SoftmaxOfRow(columns, x + i, y + i);
    return absl::OkStatus();
  });
}

int lockstep_softmax_gradient(int64_t rows, int64_t columns, const float* y, const float* dy, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(y, "y", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(dx, "dx", {rows, columns}));
    for (int64_t i = 0; i < rows * columns; i += columns) {
      double sum = 0;
      for (int64_t c = i; c < i + columns; ++c) sum += static_cast<double>(y[c]) * dy[c];
      for (int64_t c = i; c < i + columns; ++c) dx[c] = y[c] * (dy[c] - static_cast<float>(sum));
    }
    return absl::OkStatus();
  });
}

int lockstep_column_moments(int64_t rows, int64_t columns, const float* x, float* mean, float* variance) {
  return Compute([&](ComputeContext* compute) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireRow(rows));
    RETURN_IF_ERROR(RequireArray(mean, "mean", {columns}));
    RETURN_IF_ERROR(RequireArray(variance, "variance", {columns}));
    ColumnMoments().Compute(compute, rows, columns, x, mean, variance);
    return absl::OkStatus();
  });
}

int lockstep_batch_norm(int64_t rows, int64_t columns, float epsilon, const float* mean, const float* variance,
                        const float* gamma, const float* beta, int activation, const float* x, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireEpsilon(epsilon));
    ASSIGN_OR_RETURN(const ActivationKernel f, ReadNormActivation(activation));
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(mean, "mean", {columns}));
    RETURN_IF_ERROR(RequireArray(variance, "variance", {columns}));
    RETURN_IF_ERROR(RequireArray(y, "y", {rows, columns}));
    NormalizeColumns(f, rows, columns, Channels(columns, epsilon, mean, variance, gamma, beta).numbers(), x, y);
    return absl::OkStatus();
  });
}

int lockstep_batch_norm_gradient(int64_t rows, int64_t columns, float epsilon, int of_batch, const float* mean,
                                 const float* variance, const float* gamma, const float* beta, int activation,
                                 const float* x, const float* dy, float* dx, float* dgamma, float* dbeta) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireEpsilon(epsilon));
    ASSIGN_OR_RETURN(const ActivationKernel f, ReadNormActivation(activation));
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireRow(rows));
    RETURN_IF_ERROR(RequireArray(mean, "mean", {columns}));
    RETURN_IF_ERROR(RequireArray(variance, "variance", {columns}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {rows, columns}));
    const Channels channels(columns, epsilon, mean, variance, gamma, beta);
    std::vector<float> products(columns), sums(columns), offset(columns), slope(columns);
    SumNormProducts(f, rows, columns, channels, x, dy, products.data(), sums.data());
    if (dgamma != nullptr) std::copy(products.begin(), products.end(), dgamma);
    if (dbeta != nullptr) std::copy(sums.begin(), sums.end(), dbeta);
    if (dx == nullptr) return absl::OkStatus();
    // dx = gamma inverse (dz - dbeta / n - xhat dgamma / n), without the last two terms if mean and variance are
    // constants.
    const auto n = static_cast<float>(rows);
    for (int64_t c = 0; c < columns && of_batch != 0; ++c) {
      offset[c] = channels.scale[c] * (sums[c] / n);
      slope[c] = channels.scale[c] * channels.inverse[c] * (products[c] / n);
    }
    NormInputGradient(f, rows, columns, channels.numbers(), offset.data(), slope.data(), x, dy, dx);
    return absl::OkStatus();
  });
}

int lockstep_layer_norm(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta,
                        const float* x, float* means, float* inverses, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireEpsilon(epsilon));
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(means, "means", {rows}));
    RETURN_IF_ERROR(RequireArray(inverses, "inverses", {rows}));
    RETURN_IF_ERROR(RequireArray(y, "y", {rows, columns}));
    std::vector<float> ones, zeros;
    NormalizeRows(rows, columns, epsilon, OrConstant(gamma, columns, 1, &ones), OrConstant(beta, columns, 0, &zeros), x,
                  means, inverses, y);
    return absl::OkStatus();
  });
}

int lockstep_layer_norm_gradient(int64_t rows, int64_t columns, const float* gamma, const float* means,
                                 const float* inverses, const float* x, const float* dy, float* dx, float* dgamma,
                                 float* dbeta) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(means, "means", {rows}));
    RETURN_IF_ERROR(RequireArray(inverses, "inverses", {rows}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {rows, columns}));
    const RowMoments moments{means, inverses};
    if (dgamma != nullptr || dbeta != nullptr) {
      std::vector<float> products(columns), sums(columns);
      SumRowNormProducts(rows, columns, moments, x, dy, products.data(), sums.data());
      if (dgamma != nullptr) std::copy(products.begin(), products.end(), dgamma);
      if (dbeta != nullptr) std::copy(sums.begin(), sums.end(), dbeta);
    }
    if (dx == nullptr) return absl::OkStatus();
    std::vector<float> ones;
    NormalizeRowsGradient(rows, columns, OrConstant(gamma, columns, 1, &ones), moments, x, dy, dx);
    return absl::OkStatus();
  });
}

int lockstep_embedding_gradient(int64_t rows, int64_t columns, int64_t count, const int64_t* ids, int64_t skipped,
                                const float* dy, float* dtable) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireArray(dtable, "dtable", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(ids, "ids", {count}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {count, columns}));
    RETURN_IF_ERROR(RequireInRange(absl::MakeConstSpan(ids, count), "ids", rows, skipped));
    std::fill_n(dtable, rows * columns, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      if (ids[i] == skipped) continue;
      float* const row = dtable + ids[i] * columns;
      AddElements(columns, row, dy + i * columns, row);
    }
    return absl::OkStatus();
  });
}

int lockstep_dropout(uint64_t key, float rate, int64_t size, const float* x, uint8_t* kept, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireShare(rate, "rate"));
    RETURN_IF_ERROR(RequireArray(x, "x", {size}));
    RETURN_IF_ERROR(RequireArray(kept, "kept", {size}));
    RETURN_IF_ERROR(RequireArray(y, "y", {size}));
    const DropoutRule rule = RuleOf(rate);
    for (int64_t begin = 0; begin < size; begin += kDropped) {
      alignas(64) uint32_t bits[kDropped];
      const int64_t count = std::min(kDropped, size - begin);
      FillPhiloxBlocks(key, /*stream=*/0, begin / 4, (count + 31) / 32 * 32, bits);
      DropElements(rule, count, bits, x + begin, kept + begin / 8, y + begin);
    }
    return absl::OkStatus();
  });
}

int lockstep_dropout_gradient(float rate, int64_t size, const uint8_t* kept, const float* dy, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireShare(rate, "rate"));
    RETURN_IF_ERROR(RequireArray(kept, "kept", {size}));
    RETURN_IF_ERROR(RequireArray(dy, "dy", {size}));
    RETURN_IF_ERROR(RequireArray(dx, "dx", {size}));
    DropoutGradient(RuleOf(rate).scale, size, kept, dy, dx);
    return absl::OkStatus();
  });
}

}  // extern "C"

}  // namespace lockstep
