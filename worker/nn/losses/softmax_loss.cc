#include "lockstep/worker/nn/losses/softmax_loss.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "lockstep/worker/nn/kernels/simd.h"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Calls body(at, count) for the vectors of a row; count is 8, and less for the last one.
template <typename Body>
inline void ForEachVector(int64_t size, Body body) {
  for (int64_t at = 0; at < size; at += kLanes) body(at, size - at < kLanes ? size - at : kLanes);
}

inline F32x8 LoadRow(const float* p, int64_t count, float fill) {
  return count == kLanes ? Load8(p) : LoadPart8(p, count, fill);
}

inline void StoreRow(float* p, int64_t count, F32x8 x) {
  if (count == kLanes) {
    Store8(p, x);
  } else {
    StorePart8(p, count, x);
  }
}

class SoftmaxLoss : public LossOp {
 public:
  SoftmaxLoss(float weight, int64_t classes, float smoothing, bool class_labels)
      : LossOp(weight, classes, class_labels), smoothing_(smoothing) {}

 private:
  struct Denominator {
    float largest;
    // The sum of exp(x - largest).
    float sum;
  };

  // Unless `exponentials` is null, writes exp(x - largest) there.
  Denominator Sum(const float* x, float* exponentials) const {
    F32x8 largest = Set8(-kInfinity);
    ForEachVector(outputs(),
                  [&](int64_t at, int64_t count) { largest = Max8(largest, LoadRow(x + at, count, -kInfinity)); });
    Denominator result{Largest8(largest), 0};
    F32x8 sum = Set8(0);
    ForEachVector(outputs(), [&](int64_t at, int64_t count) {
      const F32x8 e = Exp8(LoadRow(x + at, count, result.largest) - Set8(result.largest));
      sum += count == kLanes ? e : KeepFirst(e, count);
      if (exponentials != nullptr) StoreRow(exponentials + at, count, e);
    });
    result.sum = Sum8(sum);
    return result;
  }

  static F32x8 KeepFirst(F32x8 x, int64_t count) { return FirstLanes(count) ? x : Set8(0); }

  float LogSum(const Denominator& d) const { return Log8(Set8(d.sum))[0] + d.largest; }

  // Replaces the exponentials by scale * (total * softmax(x) - offset): the gradient without the labels' part.
  void FinishSoftmax(const Denominator& d, float total, float offset, float scale, float* dx) const {
    const float factor = total / d.sum;
    Transform(outputs(), dx, dx, [&](F32x8 e) { return Set8(scale) * (e * Set8(factor) - Set8(offset)); });
  }

  // The label is a class: its target is 1 - smoothing, plus smoothing / classes as everywhere.
  float ClassRow(const float* x, int32_t label, float scale, float* dx) const override {
    const Denominator d = Sum(x, dx);
    const float log_sum = LogSum(d);
    const float offset = smoothing_ / static_cast<float>(outputs());
    if (dx != nullptr) {
      FinishSoftmax(d, 1, offset, scale, dx);
      dx[label] -= scale * (1 - smoothing_);
    }
    if (smoothing_ == 0) return log_sum - x[label];
    return (1 - smoothing_) * (log_sum - x[label]) + offset * SumOfDistances(x, log_sum);
  }

  float SumOfDistances(const float* x, float log_sum) const {
    F32x8 sum = Set8(0);
    ForEachVector(outputs(),
                  [&](int64_t at, int64_t count) { sum += Set8(log_sum) - LoadRow(x + at, count, log_sum); });
    return Sum8(sum);
  }

  // The label is a vector of targets; their sum need not be 1.
  float TargetRow(const float* x, const float* label, float scale, float* dx) const override {
    const Denominator d = Sum(x, dx);
    const float log_sum = LogSum(d);
    const float offset = smoothing_ / static_cast<float>(outputs());
    F32x8 loss = Set8(0);
    F32x8 total = Set8(0);
    ForEachVector(outputs(), [&](int64_t at, int64_t count) {
      const F32x8 t = LoadRow(label + at, count, 0) * Set8(1 - smoothing_) + Set8(offset);
      const F32x8 target = count == kLanes ? t : KeepFirst(t, count);
      loss += target * (Set8(log_sum) - LoadRow(x + at, count, log_sum));
      total += target;
    });
    if (dx != nullptr) {
      FinishSoftmax(d, Sum8(total), offset, scale, dx);
      Transform(outputs(), dx, label, dx, [&](F32x8 g, F32x8 t) { return g - Set8(scale * (1 - smoothing_)) * t; });
    }
    return Sum8(loss);
  }

  const float smoothing_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LossOp>> MakeSoftmaxLoss(const config::v1::Loss& config, const std::string& input,
                                                        const Shape& output_shape, const ExampleSpec& examples) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("softmax cross-entropy of layer '", input, "': ", parts...));
  };
  const float smoothing = config.softmax_cross_entropy().label_smoothing();
  if (!(smoothing >= 0 && smoothing <= 1)) return error("label_smoothing is ", smoothing, ", but must be in [0, 1]");
  if (output_shape.rank() != 1) {
    return error("it compares one vector an example, not shape ", output_shape.ToString());
  }
  const bool class_labels = examples.labels_dtype == v1::DT_INT32;
  if (class_labels && output_shape.dim(0) < examples.classes) {
    return error("the layer has ", output_shape.dim(0), " outputs, but the data has ", examples.classes, " classes");
  }
  if (!class_labels && output_shape != examples.labels_shape) {
    return error("the layer's output is ", output_shape.ToString(), ", but the labels are ",
                 examples.labels_shape.ToString());
  }
  return std::make_unique<SoftmaxLoss>(config.has_weight() ? config.weight() : 1.0f, output_shape.dim(0), smoothing,
                                       class_labels);
}

}  // namespace lockstep
