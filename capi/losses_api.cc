// The losses of kernels.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/capi/arrays.h"
#include "lockstep/capi/kernels.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/nn/losses.h"

namespace lockstep {
namespace {

// Number of elements whose loss is computed together. Changing it changes the low-order bits of the sum.
constexpr int64_t kBlockElements = 4096;

absl::StatusOr<ElementwiseLossKernel> ReadLoss(int kind, float delta) {
  switch (kind) {
    case LOCKSTEP_SQUARED_ERROR:
      return ElementwiseLossKernel{ElementwiseLossType::kSquaredError};
    case LOCKSTEP_ABSOLUTE_ERROR:
      return ElementwiseLossKernel{ElementwiseLossType::kAbsoluteDifference};
    case LOCKSTEP_HUBER:
      if (delta > 0 && std::isfinite(delta)) return ElementwiseLossKernel{ElementwiseLossType::kHuber, delta};
      return absl::InvalidArgumentError(absl::StrCat("delta is ", delta, ", must be positive and finite"));
    case LOCKSTEP_SIGMOID_CROSS_ENTROPY:
      return ElementwiseLossKernel{ElementwiseLossType::kSigmoidCrossEntropy};
    default:
      return absl::InvalidArgumentError(absl::StrCat("there is no loss ", kind));
  }
}

absl::Status RequireReduction(int reduction) {
  if (reduction == LOCKSTEP_EACH || reduction == LOCKSTEP_SUM || reduction == LOCKSTEP_MEAN) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no reduction ", reduction));
}

}  // namespace

extern "C" {

int lockstep_softmax_loss(int64_t rows, int64_t columns, const float* x, const int64_t* labels, const float* targets,
                          int64_t ignored, float smoothing, int reduction, float* loss, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    RETURN_IF_ERROR(RequireShare(smoothing, "smoothing"));
    RETURN_IF_ERROR(RequireReduction(reduction));
    RETURN_IF_ERROR(RequireArray(x, "x", {rows, columns}));
    RETURN_IF_ERROR(RequireArray(loss, "loss", {reduction == LOCKSTEP_EACH ? rows : 1}));
    if (rows > 0 && (labels == nullptr) == (targets == nullptr)) {
      return absl::InvalidArgumentError("exactly one of labels and targets must be null");
    }
    if (columns > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("columns is ", columns, ", must be less than 2^31"));
    }
    int64_t counted = rows;
    if (labels != nullptr) {
      const absl::Span<const int64_t> all(labels, rows);
      RETURN_IF_ERROR(RequireInRange(all, "labels", columns, ignored));
      counted -= std::count(all.begin(), all.end(), ignored);
    }
    const double scale = reduction == LOCKSTEP_MEAN ? 1.0 / static_cast<double>(counted) : 1.0;
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      float* const gradient = dx == nullptr ? nullptr : dx + i * columns;
      const LossRow row{columns, x + i * columns, static_cast<float>(scale), gradient};
      float row_loss = 0;
      if (labels == nullptr) {
        row_loss = SoftmaxLossOfTargets(row, smoothing, targets + i * columns);
      } else if (labels[i] != ignored) {
        row_loss = SoftmaxLossOfLabel(row, smoothing, static_cast<int32_t>(labels[i]));
      } else if (gradient != nullptr) {
        std::fill_n(gradient, columns, 0.0f);
      }
      sum += row_loss;
      if (reduction == LOCKSTEP_EACH) loss[i] = row_loss;
    }
    // If no row contributes, the mean is 0 times infinity, which is NaN.
    if (reduction != LOCKSTEP_EACH) *loss = static_cast<float>(sum * scale);
    return absl::OkStatus();
  });
}

int lockstep_elementwise_loss(int loss_kind, float delta, int64_t size, const float* x, const float* targets,
                              int reduction, float* loss, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const ElementwiseLossKernel kernel, ReadLoss(loss_kind, delta));
    RETURN_IF_ERROR(RequireReduction(reduction));
    RETURN_IF_ERROR(RequireArray(x, "x", {size}));
    RETURN_IF_ERROR(RequireArray(targets, "targets", {size}));
    RETURN_IF_ERROR(RequireArray(loss, "loss", {reduction == LOCKSTEP_EACH ? size : 1}));
    const int64_t block = reduction == LOCKSTEP_EACH ? 1 : kBlockElements;
    const double divisor = reduction == LOCKSTEP_MEAN ? static_cast<double>(size) : 1.0;
    double sum = 0;
    for (int64_t begin = 0; begin < size; begin += block) {
      const int64_t count = std::min(block, size - begin);
      // The kernel returns the mean over the block, so this is the block's weight in the result.
      const double share = static_cast<double>(count) / divisor;
      const float block_loss = ElementwiseLossOfTargets(
          kernel, {count, x + begin, static_cast<float>(share), dx == nullptr ? nullptr : dx + begin}, targets + begin);
      sum += block_loss * share;
      if (reduction == LOCKSTEP_EACH) loss[begin] = block_loss;
    }
    if (reduction != LOCKSTEP_EACH) {
      *loss =
          size == 0 && reduction == LOCKSTEP_MEAN ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sum);
    }
    return absl::OkStatus();
  });
}

}  // extern "C"

}  // namespace lockstep
