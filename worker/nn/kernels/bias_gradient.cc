#include "lockstep/worker/nn/kernels/bias_gradient.h"

#include <algorithm>

#include "lockstep/worker/nn/kernels/activation_simd.h"
#include "lockstep/worker/nn/kernels/columns.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockRows = 256;

}  // namespace

void BiasGradient::Compute(ComputeContext* compute, const ActivationFunction& f, int64_t rows, int64_t columns,
                           const float* value, const float* dy, float* dx, float* sums) {
  if (f.kind == config::v1::NONE && dx == dy && sums == nullptr) return;
  const bool store = f.kind != config::v1::NONE || dx != dy;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* partial = blocks == 1 && sums != nullptr ? sums : partial_sums_.Get(blocks * columns);
  compute->ParallelFor(blocks, [&](int64_t block) {
    const int64_t begin = block * kBlockRows;
    const int64_t end = std::min(rows, begin + kBlockRows);
    WithActivation(f, [&](auto function) {
      ForEachStrip(columns, [&](auto strip) {
        F32x8 sum[strip.kVectors] = {};
        for (int64_t row = begin; row < end; ++row) {
          const int64_t at = row * columns;
#pragma GCC unroll 4
          for (int v = 0; v < strip.kVectors; ++v) {
            const F32x8 gradient = function.Gradient(strip.Load(value + at, v), strip.Load(dy + at, v));
            if (store) strip.Store(dx + at, v, gradient);
            sum[v] += gradient;
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) strip.Store(partial + block * columns, v, sum[v]);
      });
    });
  });
  if (sums == nullptr || blocks == 1) return;
  ForEachStrip(columns, [&](auto strip) {
#pragma GCC unroll 4
    for (int v = 0; v < strip.kVectors; ++v) {
      F32x8 sum = strip.Load(partial, v);
      for (int64_t block = 1; block < blocks; ++block) sum += strip.Load(partial + block * columns, v);
      strip.Store(sums, v, sum);
    }
  });
}

}  // namespace lockstep
