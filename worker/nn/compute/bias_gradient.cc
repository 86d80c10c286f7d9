#include "lockstep/worker/nn/compute/bias_gradient.h"

#include <algorithm>

#include "lockstep/kernels/nn/activation.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockRows = 256;

}  // namespace

void BiasGradient::Compute(ComputeContext* compute, const ActivationFunction& f, int64_t rows, int64_t columns,
                           const float* value, const float* dy, float* dx, float* sums) {
  const ActivationKernel kernel = KernelOf(f);
  if (kernel.type == ActivationType::kIdentity && dx == dy && sums == nullptr) return;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* const partial = blocks == 1 || sums == nullptr ? sums : partial_sums_.Get(blocks * columns);
  compute->ParallelFor(blocks, [&](int64_t block) {
    const int64_t begin = block * kBlockRows;
    const int64_t end = std::min(rows, begin + kBlockRows);
    const int64_t at = begin * columns;
    ActivationGradientAndSums(kernel, end - begin, columns, value + at, dy + at, dx + at,
                              partial == nullptr ? nullptr : partial + block * columns);
  });
  if (sums != nullptr && blocks > 1) SumColumns(blocks, columns, partial, sums);
}

}  // namespace lockstep
