#include "lockstep/worker/nn/kernels/panels.h"

#include <algorithm>

#include "lockstep/worker/nn/kernels/tile_kernel.h"

namespace lockstep {
namespace {

// Transposes 8 x 8: row i of the result, 16 floats apart, is column i of the input.
void Transpose8(const float* from, int64_t from_stride, float* to) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * kTileColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * kTileColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// panel[k][j] = b(k, column + j), and anything beyond the last column.
void PackPanel(const Matrix& b, int64_t column, float* panel) {
  const int64_t count = std::min<int64_t>(kTileColumns, b.columns - column);
  const int64_t column_step = b.transposed ? b.stride : 1;
  const int64_t row_step = b.transposed ? 1 : b.stride;
  const float* from = b.data + column * column_step;
  int64_t k = 0;
  if (!b.transposed) {
    // A row may be read beyond its last column if another row follows.
    const int64_t elements = (b.rows - 1) * b.stride + b.columns;
    const int64_t whole = (elements - column - kTileColumns) / b.stride + 1;
    const int64_t end = elements < column + kTileColumns ? 0 : std::min(b.rows, whole);
    for (; k < end; ++k) {
      Store8(panel + k * kTileColumns, Load8(from + k * row_step));
      Store8(panel + k * kTileColumns + kLanes, Load8(from + k * row_step + kLanes));
    }
  } else if (count == kTileColumns) {
    for (; k + kLanes <= b.rows; k += kLanes) {
      Transpose8(from + k, column_step, panel + k * kTileColumns);
      Transpose8(from + k + kLanes * column_step, column_step, panel + k * kTileColumns + kLanes);
    }
  }
  for (; k < b.rows; ++k) {
    float* row = panel + k * kTileColumns;
    for (int64_t j = 0; j < kTileColumns; ++j) row[j] = j < count ? from[k * row_step + j * column_step] : 0.0f;
  }
}

}  // namespace

void PackPanels(const Matrix& b, float* panels) {
  for (int64_t column = 0; column < b.columns; column += kTileColumns, panels += b.rows * kTileColumns) {
    PackPanel(b, column, panels);
  }
}

}  // namespace lockstep
