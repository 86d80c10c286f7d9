#include "lockstep/worker/nn/compute/conv_input_gradient.h"

#include <algorithm>

namespace lockstep {
namespace {

// Maximum number of groups into which a batch's images are divided. Each group has memory for one padded image and is
// computed by one thread, so further threads stay idle.
constexpr int64_t kGroups = 16;

int64_t MostTaps(const SlidingWindow& w) { return (w.size + w.stride - 1) / w.stride; }

// Returns the number of rows or columns of zeros before the first output, which are read for the first input positions.
int64_t Before(const SlidingWindow& w) { return MostTaps(w) - 1; }

// Returns the number of rows or columns of zeros after the last output. The last input position reads output (input - 1
// + padding) / stride.
int64_t After(const SlidingWindow& w) {
  return std::max<int64_t>(0, (w.input - 1 + w.padding) / w.stride - (w.output - 1));
}

}  // namespace

ConvInputGradient::ConvInputGradient(const WindowGeometry& geometry, int64_t filters)
    : geometry_(geometry), filters_(filters), padded_(MakeImages(geometry, filters)) {
  // Omits phases without kernel elements or positions, since the constructor's cost must not depend on the stride.
  const int64_t phases_y = std::min(geometry.y.stride, geometry.y.size);
  const int64_t phases_x = std::min(geometry.x.stride, geometry.x.size);
  for (int64_t py = 0; py < phases_y; ++py) {
    const DimensionPhase y = MakeDimensionPhase(geometry.y, py);
    for (int64_t px = 0; px < phases_x && y.inputs > 0; ++px) {
      const DimensionPhase x = MakeDimensionPhase(geometry.x, px);
      if (x.inputs <= 0) continue;
      Phase phase{y, x, {y.taps, x.taps * filters, 1, padded_.row_size()}, panels_size_};
      panels_size_ += PaddedColumns(geometry.channels) * phase.patch_size();
      phases_.push_back(phase);
    }
  }
}

PaddedImages ConvInputGradient::MakeImages(const WindowGeometry& geometry, int64_t filters) {
  const SlidingWindow& y = geometry.y;
  const SlidingWindow& x = geometry.x;
  return PaddedImages(y.output, x.output, filters, {Before(y), After(y), Before(x), After(x)});
}

ConvInputGradient::DimensionPhase ConvInputGradient::MakeDimensionPhase(const SlidingWindow& window, int64_t phase) {
  DimensionPhase result;
  result.phase = phase;
  result.taps = (window.size - phase + window.stride - 1) / window.stride;
  // Computes the smallest q >= padding in this phase, where q = i + padding for input position i.
  const int64_t steps = std::max<int64_t>(0, (window.padding - phase + window.stride - 1) / window.stride);
  result.first_input = phase + steps * window.stride - window.padding;
  result.inputs = (window.input - result.first_input + window.stride - 1) / window.stride;
  // Position q = phase + steps * stride reads outputs steps - (taps - 1) ... steps.
  result.first_output = steps - (result.taps - 1) + Before(window);
  return result;
}

void ConvInputGradient::PackKernel(const float* kernel) {
  const int64_t channels = geometry_.channels;
  float* panels = panels_.Get(panels_size_);
  for (const Phase& phase : phases_) {
    int64_t row = 0;
    for (int64_t ty = phase.y.taps - 1; ty >= 0; --ty) {
      for (int64_t tx = phase.x.taps - 1; tx >= 0; --tx, row += filters_) {
        const int64_t ky = phase.y.phase + ty * geometry_.y.stride;
        const int64_t kx = phase.x.phase + tx * geometry_.x.stride;
        const float* element = kernel + (ky * geometry_.x.size + kx) * channels * filters_;
        PackPanelRows(Transposed(element, filters_, channels), row, phase.patch_size(), panels + phase.panels);
      }
    }
  }
}

void ConvInputGradient::Compute(ComputeContext* compute, int64_t batch, const float* output_gradient,
                                const float* kernel, float* input_gradient) {
  PackKernel(kernel);
  const int64_t output_size = geometry_.y.output * geometry_.x.output * filters_;
  const int64_t input_size = geometry_.y.input * geometry_.x.input * geometry_.channels;
  // At least 1, even if there are no images.
  const int64_t grain = std::max<int64_t>(1, compute->threads() == 1 ? batch : (batch + kGroups - 1) / kGroups);
  if (padded_.needed()) padded_.Reserve((batch + grain - 1) / grain);
  compute->ParallelRanges(batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      const float* gradient = output_gradient + image * output_size;
      if (padded_.needed()) {
        padded_.Copy(begin / grain, gradient);
        gradient = padded_.image(begin / grain);
      }
      ComputeImage(gradient, input_gradient + image * input_size);
    }
  });
}

void ConvInputGradient::ComputeImage(const float* padded_gradient, float* input_gradient) const {
  const SlidingWindow& y = geometry_.y;
  const SlidingWindow& x = geometry_.x;
  if (y.stride > y.size || x.stride > x.size) {
    // Some input positions are not read by any output, so their gradients are 0.
    std::fill_n(input_gradient, y.input * x.input * geometry_.channels, 0.0f);
  }
  for (const Phase& phase : phases_) ComputePhase(phase, padded_gradient, input_gradient);
}

void ConvInputGradient::ComputePhase(const Phase& phase, const float* padded_gradient, float* input_gradient) const {
  const int64_t channels = geometry_.channels;
  const DimensionPhase& y = phase.y;
  const DimensionPhase& x = phase.x;
  const PixelGrid from{y.inputs, x.inputs, padded_.row_size(), filters_};
  const PixelGrid to{y.inputs, x.inputs, geometry_.y.stride * geometry_.x.input * channels,
                     geometry_.x.stride * channels};
  MultiplyPatches(padded_gradient + y.first_output * padded_.row_size() + x.first_output * filters_, from, phase.patch,
                  panels_.data() + phase.panels, channels, nullptr,
                  input_gradient + (y.first_input * geometry_.x.input + x.first_input) * channels, to);
}

}  // namespace lockstep
