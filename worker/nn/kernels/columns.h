#ifndef LOCKSTEP_WORKER_NN_KERNELS_COLUMNS_H_
#define LOCKSTEP_WORKER_NN_KERNELS_COLUMNS_H_

#include <cstdint>
#include <type_traits>

#include "lockstep/worker/nn/kernels/simd.h"

// Loops over the columns of a row-major matrix in strips of a few vectors, so that the sums
// of a strip stay in registers while the rows go by.
namespace lockstep {

// V vectors of 8 columns, all of them inside the matrix.
template <int V>
struct FullStrip {
  static constexpr int kVectors = V;
  int64_t column;
  F32x8 Load(const float* row, int v) const { return Load8(row + column + v * kLanes); }
  void Store(float* row, int v, F32x8 x) const { Store8(row + column + v * kLanes, x); }
};

// The last columns, fewer than 8; the other lanes read 0 and are not written.
struct PartStrip {
  static constexpr int kVectors = 1;
  int64_t column;
  int64_t count;
  F32x8 Load(const float* row, int) const { return LoadPart8(row + column, count); }
  void Store(float* row, int, F32x8 x) const { StorePart8(row + column, count, x); }
};

// Calls body(strip) for strips that cover [0, columns).
template <typename Body>
inline void ForEachStrip(int64_t columns, Body body) {
  int64_t column = 0;
  for (; column + 4 * kLanes <= columns; column += 4 * kLanes) body(FullStrip<4>{column});
  for (; column + kLanes <= columns; column += kLanes) body(FullStrip<1>{column});
  if (column < columns) body(PartStrip{column, columns - column});
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_COLUMNS_H_
