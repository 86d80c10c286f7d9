#ifndef LOCKSTEP_WORKER_NN_COMPUTE_CONV_INPUT_GRADIENT_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_CONV_INPUT_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "lockstep/kernels/images/window_geometry.h"
#include "lockstep/kernels/products/convolution.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/padded_images.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {

// The gradient of a convolution with respect to its input. The input positions are divided into stride x stride phases.
// All positions of a phase are read by the same kernel elements, at adjacent outputs. The gradient of each phase is
// therefore a convolution, with stride 1, of the padded output gradient with these elements in reverse order. Keeps
// scratch memory between batches. Not thread-safe.
class ConvInputGradient {
 public:
  ConvInputGradient(const WindowGeometry& geometry, int64_t filters);

  // Reads output_gradient [batch, out height, out width, filters] and kernel [ky, kx, channels, filters]; overwrites
  // input_gradient [batch, height, width, channels].
  void Compute(ComputeContext* compute, int64_t batch, const float* output_gradient, const float* kernel,
               float* input_gradient);

 private:
  // The positions q with q % stride = `phase`, counted from the first padding position.
  struct DimensionPhase {
    int64_t phase = 0;
    // Number of kernel elements in the phase: phase, phase + stride, ...
    int64_t taps = 0;
    // The input positions are first_input, first_input + stride, ... The first one reads outputs from padded position
    // first_output on.
    int64_t first_input = 0;
    int64_t inputs = 0;
    int64_t first_output = 0;
  };
  struct Phase {
    DimensionPhase y;
    DimensionPhase x;
    TileElements patch;
    // Offset of the phase's panels in panels_.
    int64_t panels = 0;
    int64_t patch_size() const { return patch.runs * patch.length; }
  };

  static PaddedImages MakeImages(const WindowGeometry& geometry, int64_t filters);
  static DimensionPhase MakeDimensionPhase(const SlidingWindow& window, int64_t phase);
  void PackKernel(const float* kernel);
  void ComputeImage(const float* padded_gradient, float* input_gradient) const;
  void ComputePhase(const Phase& phase, const float* padded_gradient, float* input_gradient) const;

  const WindowGeometry geometry_;
  const int64_t filters_;
  std::vector<Phase> phases_;
  int64_t panels_size_ = 0;
  Workspace<float> panels_;
  // Holds an image for each group.
  PaddedImages padded_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_CONV_INPUT_GRADIENT_H_
