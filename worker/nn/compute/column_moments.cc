#include "lockstep/worker/nn/compute/column_moments.h"

#include <algorithm>

#include "lockstep/kernels/nn/batch_norm.h"

namespace lockstep {
namespace {

// Small enough that the second pass reads the rows from the cache. Changing it changes the low-order bits of the
// results.
constexpr int64_t kBlockRows = 256;

}  // namespace

void ColumnMoments::Compute(ComputeContext* compute, int64_t rows, int64_t columns, const float* x, float* mean,
                            float* variance) {
  const int64_t num_blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* const blocks = blocks_.Get(num_blocks * 2 * columns);
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    float* const block = blocks + begin / kBlockRows * 2 * columns;
    ColumnMeansAndSquares(end - begin, columns, x + begin * columns, block, block + columns);
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
