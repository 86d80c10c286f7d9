#include "lockstep/worker/nn/compute/activation.h"

#include "lockstep/kernels/nn/activation.h"

namespace lockstep {

void Activate(const ActivationFunction& f, int64_t size, const float* x, float* y) {
  ApplyActivation(KernelOf(f), size, x, y);
}

void AddBiasAndActivate(const ActivationFunction& f, const Tile& tile, int64_t stride, const float* bias, float* sum,
                        float* y) {
  const int64_t at = tile.row * stride + tile.column;
  const float* const tile_bias = bias == nullptr ? nullptr : bias + tile.column;
  AddBiasAndActivateRows(KernelOf(f), tile.rows, tile.columns, stride, tile_bias, sum + at, y + at);
}

void ActivationGradient(const ActivationFunction& f, int64_t size, const float* value, const float* dy, float* dx) {
  ApplyActivationGradient(KernelOf(f), size, value, dy, dx);
}

}  // namespace lockstep
