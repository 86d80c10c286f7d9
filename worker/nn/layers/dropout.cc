#include "lockstep/worker/nn/layers/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/common/base/philox.h"
#include "lockstep/worker/nn/kernels/simd.h"
#include "lockstep/worker/nn/kernels/workspace.h"

namespace lockstep {
namespace {

// Elements that are computed together, a multiple of 32.
constexpr int64_t kBlock = 4096;

class DropoutOp : public LayerOp {
 public:
  DropoutOp(std::string name, Shape shape, float rate)
      : LayerOp(shape),
        name_(std::move(name)),
        size_(shape.num_elements()),
        scale_(1.0f / (1.0f - rate)),
        lowest_kept_(static_cast<int32_t>(std::ceil(static_cast<double>(rate) * (1 << 24)))) {}

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
      alignas(32) uint32_t bits[kBlock];
      philox.FillBits(begin / 4, absl::MakeSpan(bits, (end - begin + 31) / 32 * 32));
      int64_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        const I32x8 keep = Keep(bits + (i - begin));
        kept[i / 8] = static_cast<uint8_t>(_mm256_movemask_ps(_mm256_castsi256_ps((__m256i)keep)));
        Store8(output + i, keep ? Load8(input + i) * Set8(scale_) : Set8(0));
      }
      if (i < end) {
        const I32x8 keep = Keep(bits + (i - begin));
        kept[i / 8] = static_cast<uint8_t>(_mm256_movemask_ps(_mm256_castsi256_ps((__m256i)keep)));
        StorePart8(output + i, end - i, keep ? LoadPart8(input + i, end - i) * Set8(scale_) : Set8(0));
      }
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    float* input_gradient = input_gradients[0];
    if (input_gradient == nullptr) return;
    const uint8_t* kept = kept_.data();
    pass.compute->ParallelRanges(pass.batch * size_, kBlock, [&](int64_t begin, int64_t end) {
      const I32x8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
      int64_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        const I32x8 keep = (bit & static_cast<int32_t>(kept[i / 8])) != 0;
        Store8(input_gradient + i, keep ? Load8(output_gradient + i) * Set8(scale_) : Set8(0));
      }
      for (; i < end; ++i) {
        input_gradient[i] = (kept[i / 8] >> (i % 8) & 1) != 0 ? output_gradient[i] * scale_ : 0.0f;
      }
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  // The comparison of the 24-bit uniform numbers with `rate`, in whole numbers.
  I32x8 Keep(const uint32_t* bits) const {
    const __m256i uniform = _mm256_srli_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)), 8);
    return (I32x8)uniform >= lowest_kept_;
  }

  const std::string name_;
  const int64_t size_;
  const float scale_;
  const int32_t lowest_kept_;
  // One bit for each element of the batch.
  Workspace<uint8_t> kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeDropout(LayerBuilder* builder) {
  const float rate = builder->config().dropout().rate();
  if (!(rate >= 0 && rate < 1)) return builder->Error("rate is ", rate, ", but must be in [0, 1)");
  return std::make_unique<DropoutOp>(builder->config().name(), builder->input_shape(), rate);
}

}  // namespace lockstep
