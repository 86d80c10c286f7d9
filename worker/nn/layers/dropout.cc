#include "lockstep/worker/nn/layers/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/nn/dropout.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

// Elements computed together, a multiple of 32.
constexpr int64_t kBlock = 4096;

class DropoutOp : public LayerOp {
 public:
  DropoutOp(std::string name, Shape shape, float rate)
      : LayerOp(shape),
        name_(std::move(name)),
        size_(shape.num_elements()),
        rule_{static_cast<int32_t>(std::ceil(static_cast<double>(rate) * (1 << 24))), 1.0f / (1.0f - rate)} {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    const int64_t size = pass.batch * size_;
    const float* input = inputs[0];
    if (!pass.training) {
      std::copy(input, input + size, output);
      return absl::OkStatus();
    }
    const Philox philox = Philox::ForSlot(pass.key.seed, name_, pass.key.step, pass.key.slot);
    uint8_t* kept = kept_.Get((size + 7) / 8);
    pass.compute->ParallelRanges(size, kBlock, [&](int64_t begin, int64_t end) {
      alignas(64) uint32_t bits[kBlock];
      philox.FillBits(begin / 4, absl::MakeSpan(bits, (end - begin + 31) / 32 * 32));
      DropElements(rule_, end - begin, bits, input + begin, kept + begin / 8, output + begin);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    float* input_gradient = input_gradients[0];
    if (input_gradient == nullptr) return;
    const uint8_t* kept = kept_.data();
    pass.compute->ParallelRanges(pass.batch * size_, kBlock, [&](int64_t begin, int64_t end) {
      DropoutGradient(rule_.scale, end - begin, kept + begin / 8, output_gradient + begin, input_gradient + begin);
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  const std::string name_;
  const int64_t size_;
  // Compares the 24-bit uniform numbers with `rate`, as integers.
  const DropoutRule rule_;
  // A bit for each element of the batch, which is set if the element is kept.
  Workspace<uint8_t> kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeDropout(LayerBuilder* builder) {
  const float rate = builder->config().dropout().rate();
  if (!(rate >= 0 && rate < 1)) return builder->Error("rate is ", rate, ", but must be in [0, 1)");
  return std::make_unique<DropoutOp>(builder->config().name(), builder->input_shape(), rate);
}

}  // namespace lockstep
