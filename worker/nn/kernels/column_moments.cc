#include "lockstep/worker/nn/kernels/column_moments.h"

#include <algorithm>

#include "lockstep/worker/nn/kernels/columns.h"

namespace lockstep {
namespace {

// Few enough to be read twice from the cache. The bits depend on it.
constexpr int64_t kBlockRows = 256;

// Of rows [begin, end): means and sums of squared distances, [2, columns].
void ComputeBlock(const float* x, int64_t begin, int64_t end, int64_t columns, float* block) {
  const F32x8 count = Set8(static_cast<float>(end - begin));
  ForEachStrip(columns, [&](auto strip) {
    F32x8 sum[strip.kVectors] = {};
    for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) sum[v] += strip.Load(x + row * columns, v);
    }
    F32x8 squares[strip.kVectors] = {};
#pragma GCC unroll 4
    for (int v = 0; v < strip.kVectors; ++v) sum[v] /= count;
    for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) {
        const F32x8 distance = strip.Load(x + row * columns, v) - sum[v];
        squares[v] = MultiplyAdd8(distance, distance, squares[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < strip.kVectors; ++v) {
      strip.Store(block, v, sum[v]);
      strip.Store(block + columns, v, squares[v]);
    }
  });
}

}  // namespace

void ColumnMoments::Compute(ComputeContext* compute, int64_t rows, int64_t columns, const float* x, float* mean,
                            float* variance) {
  const int64_t num_blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* const blocks = blocks_.Get(num_blocks * 2 * columns);
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    ComputeBlock(x, begin, end, columns, blocks + begin / kBlockRows * 2 * columns);
  });
  for (int64_t c = 0; c < columns; ++c) {
    double count = 0;
    double merged_mean = 0;
    double squares = 0;
    for (int64_t block = 0; block < num_blocks; ++block) {
      const float* s = blocks + block * 2 * columns + c;
      const double block_count = static_cast<double>(std::min(kBlockRows, rows - block * kBlockRows));
      const double distance = s[0] - merged_mean;
      const double total = count + block_count;
      merged_mean += distance * (block_count / total);
      squares += s[columns] + distance * distance * (count * block_count / total);
      count = total;
    }
    mean[c] = static_cast<float>(merged_mean);
    variance[c] = static_cast<float>(squares / count);
  }
}

}  // namespace lockstep
