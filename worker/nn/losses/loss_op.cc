#include "lockstep/worker/nn/losses/loss_op.h"

#include <algorithm>

namespace lockstep {
namespace {

// Elements of the outputs computed together.
constexpr int64_t kBlockElements = 8192;

}  // namespace

double LossOp::Compute(ComputeContext* compute, const Batch& batch, const float* outputs, float* gradient) {
  const int64_t size = batch.size;
  const float* weights = batch.weights.dtype() == v1::DT_INVALID ? nullptr : batch.weights.flat<float>().data();
  int64_t count = size;
  if (weights != nullptr) {
    count = 0;
    for (int64_t i = 0; i < size; ++i) count += weights[i] != 0;
  }
  const double scale = count == 0 ? 0.0 : static_cast<double>(weight_) / static_cast<double>(count);
  float* scales = scales_.Get(size);
  float* losses = losses_.Get(size);
  for (int64_t i = 0; i < size; ++i) {
    scales[i] = static_cast<float>(weights == nullptr ? scale : scale * weights[i]);
  }
  const int64_t grain = std::max<int64_t>(1, kBlockElements / outputs_);
  compute->ParallelRanges(size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = outputs + i * outputs_;
      float* dx = gradient == nullptr ? nullptr : gradient + i * outputs_;
      losses[i] = class_labels_ ? ClassRow(x, batch.labels.flat<int32_t>()[i], scales[i], dx)
                                : TargetRow(x, batch.labels.flat<float>().data() + i * outputs_, scales[i], dx);
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    // An example with weight 0 adds nothing, even if its loss is not finite.
    if (weights == nullptr) {
      sum += losses[i];
    } else if (weights[i] != 0) {
      sum += static_cast<double>(weights[i]) * losses[i];
    }
  }
  return sum * scale;
}

}  // namespace lockstep
