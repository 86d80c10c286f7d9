#include "lockstep/worker/nn/kernels/panels.h"

#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/worker/nn/kernels/tile_kernel.h"

namespace lockstep {
namespace {

std::vector<float> Random(int64_t size, uint64_t stream) {
  std::vector<float> values(size);
  Philox(1, stream).FillNormal(absl::MakeSpan(values));
  return values;
}

// A matrix with gaps between its rows, or columns when transposed.
struct Operand {
  Operand(int64_t rows, int64_t columns, bool transposed, uint64_t stream)
      : values(Random((transposed ? columns * (rows + 3) : rows * (columns + 3)), stream)),
        matrix{values.data(), rows, columns, (transposed ? rows : columns) + 3, transposed} {}
  float at(int64_t r, int64_t c) const {
    return matrix.transposed ? values[c * matrix.stride + r] : values[r * matrix.stride + c];
  }
  std::vector<float> values;
  Matrix matrix;
};

TEST(PanelsTest, PanelsHoldSixteenColumnsRowByRow) {
  for (const int64_t rows : {1, 7, 8, 9, 20}) {
    for (const int64_t columns : {1, 7, 15, 16, 17, 33}) {
      for (const bool transposed : {false, true}) {
        const Operand b(rows, columns, transposed, 1);
        std::vector<float> panels(NumPanels(columns) * rows * kTileColumns + 1, 77.0f);
        PackPanels(b.matrix, panels.data());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            const int64_t at = (c / kTileColumns * rows + r) * kTileColumns + c % kTileColumns;
            ASSERT_EQ(panels[at], b.at(r, c)) << rows << " x " << columns << ": " << r << " " << c;
          }
        }
        EXPECT_EQ(panels.back(), 77.0f);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
