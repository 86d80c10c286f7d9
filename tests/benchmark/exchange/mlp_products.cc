#include "lockstep/tests/benchmark/exchange/mlp_products.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int64_t kUnits[] = {784, 512, 512, 10};
constexpr int kLayers = 3;

}  // namespace

MlpProducts::MlpProducts(int64_t batch) {
  float *inputs[kLayers], *kernels[kLayers], *outputs[kLayers];
  for (int i = 0; i < kLayers; ++i) {
    inputs[i] = NewMatrix(batch, kUnits[i]);
    kernels[i] = NewMatrix(kUnits[i], kUnits[i + 1]);
    outputs[i] = NewMatrix(batch, kUnits[i + 1]);
    products_.push_back({absl::StrCat("forward", i + 1), RowMajor(inputs[i], batch, kUnits[i]),
                         RowMajor(kernels[i], kUnits[i], kUnits[i + 1]), outputs[i]});
  }
  for (int i = kLayers - 1; i >= 0; --i) {
    const Matrix gradient = RowMajor(outputs[i], batch, kUnits[i + 1]);
    products_.push_back({absl::StrCat("weights", i + 1), Transposed(inputs[i], kUnits[i], batch), gradient,
                         NewMatrix(kUnits[i], kUnits[i + 1])});
    if (i == 0) continue;
    products_.push_back({absl::StrCat("inputs", i + 1), gradient, Transposed(kernels[i], kUnits[i + 1], kUnits[i]),
                         NewMatrix(batch, kUnits[i])});
  }
}

float* MlpProducts::NewMatrix(int64_t rows, int64_t columns) {
  matrices_.emplace_back(rows * columns * sizeof(float));
  float* const data = matrices_.back().as<float>();
  Philox(1, rows).FillNormal({data, static_cast<size_t>(rows * columns)});
  return data;
}

}  // namespace benchmark
}  // namespace lockstep
