// Panels of a matrix's columns, in the layout that tiles read. Compiled once for each target.
#if defined(LOCKSTEP_KERNELS_VECTORS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_PANEL_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_PANEL_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "lockstep/kernels/vectors/matrix.h"
#include "lockstep/kernels/vectors/tile-inl.h"
#include "lockstep/kernels/vectors/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// Returns the address of element (row, column) of m.
HWY_INLINE const float* At(const Matrix& m, int64_t row, int64_t column) {
  return m.data + (m.transposed ? column * m.stride + row : row * m.stride + column);
}

// Packs columns [column, column + count) of rows [row, row + rows) of b. Panel p begins at panels + p * panel_size, and
// its element (k, j) is b(row + k, column + p * kPanelColumns + j), or 0 beyond `count`.
HWY_INLINE void PackPanelsOf(const Matrix& b, int64_t row, int64_t rows, int64_t column, int64_t count,
                             int64_t panel_size, float* panels) {
  const Floats d;
  const float* from = At(b, row, column);
  if (b.transposed) {
    for (int64_t first = 0; first < count; first += kPanelColumns, panels += panel_size) {
      const int64_t columns = std::min<int64_t>(kPanelColumns, count - first);
      TransposeMatrix(columns, rows, from + first * b.stride, b.stride, panels, kPanelColumns);
      for (int64_t k = 0; k < rows && columns < kPanelColumns; ++k) {
        std::fill_n(panels + k * kPanelColumns + columns, kPanelColumns - columns, 0.0f);
      }
    }
    return;
  }
  for (int64_t k = 0; k < rows; ++k, from += b.stride, panels += kPanelColumns) {
    float* to = panels;
    for (int64_t first = 0; first < count; first += kPanelColumns, to += panel_size) {
      hn::Store(LoadUpTo(d, from + first, count - first), d, to);
      hn::Store(LoadUpTo(d, from + first + kFloatLanes, count - first - kFloatLanes), d, to + kFloatLanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_PANEL_INL_H_
