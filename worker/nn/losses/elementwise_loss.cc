#include "lockstep/worker/nn/losses/elementwise_loss.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/worker/nn/kernels/simd.h"

namespace lockstep {
namespace {

F32x8 Abs8(F32x8 x) { return x < Set8(0) ? -x : x; }
F32x8 Sign8(F32x8 x) { return x > Set8(0) ? Set8(1) : (x < Set8(0) ? Set8(-1) : Set8(0)); }

// Each sets `loss` to l(x, t) and returns dl/dx.
struct SigmoidCrossEntropy {
  F32x8 operator()(F32x8 x, F32x8 t, F32x8* loss) const {
    const F32x8 e = Exp8(-Abs8(x));
    *loss = Max8(Set8(0), x) - x * t + Log8(Set8(1) + e);
    const F32x8 positive = Set8(1) / (Set8(1) + e);
    return (x < Set8(0) ? e * positive : positive) - t;
  }
};

struct SquaredError {
  F32x8 operator()(F32x8 x, F32x8 t, F32x8* loss) const {
    const F32x8 e = x - t;
    *loss = e * e;
    return e + e;
  }
};

struct AbsoluteDifference {
  F32x8 operator()(F32x8 x, F32x8 t, F32x8* loss) const {
    *loss = Abs8(x - t);
    return Sign8(x - t);
  }
};

struct Huber {
  F32x8 operator()(F32x8 x, F32x8 t, F32x8* loss) const {
    const F32x8 e = x - t;
    const F32x8 size = Abs8(e);
    const auto far = size > Set8(delta);
    *loss = far ? Set8(delta) * size - Set8(0.5f * delta * delta) : Set8(0.5f) * e * e;
    return far ? Set8(delta) * Sign8(e) : e;
  }
  float delta;
};

struct Hinge {
  F32x8 operator()(F32x8 x, F32x8 t, F32x8* loss) const {
    const F32x8 sign = t + t - Set8(1);
    const F32x8 margin = Set8(1) - sign * x;
    *loss = Max8(Set8(0), margin);
    return margin > Set8(0) ? -sign : Set8(0);
  }
};

template <typename Function>
class ElementwiseLoss : public LossOp {
 public:
  ElementwiseLoss(float weight, int64_t outputs, bool class_labels, Function function)
      : LossOp(weight, outputs, class_labels), function_(function) {}

 private:
  float ClassRow(const float* x, int32_t label, float scale, float* dx) const override {
    return Row(x, scale, dx, [&](int64_t at, int64_t) { return ClassTargets(label, at); });
  }

  float TargetRow(const float* x, const float* targets, float scale, float* dx) const override {
    return Row(x, scale, dx, [&](int64_t at, int64_t count) { return Load(targets + at, count); });
  }

  static F32x8 Load(const float* p, int64_t count) { return count == kLanes ? Load8(p) : LoadPart8(p, count); }

  // One output: the class, 0 or 1. Several: 1 at the class.
  F32x8 ClassTargets(int32_t label, int64_t at) const {
    if (outputs() == 1) return Set8(static_cast<float>(label));
    const I32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane == static_cast<int32_t>(label - at) ? Set8(1) : Set8(0);
  }

  template <typename Targets>
  float Row(const float* x, float example_scale, float* dx, Targets targets) const {
    const int64_t size = outputs();
    const float scale = example_scale / static_cast<float>(size);
    F32x8 sum = Set8(0);
    for (int64_t at = 0; at < size; at += kLanes) {
      const int64_t count = size - at < kLanes ? size - at : kLanes;
      F32x8 loss;
      const F32x8 slope = function_(Load(x + at, count), targets(at, count), &loss) * Set8(scale);
      if (count == kLanes) {
        sum += loss;
        if (dx != nullptr) Store8(dx + at, slope);
      } else {
        const I32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
        sum += lane < static_cast<int32_t>(count) ? loss : Set8(0);
        if (dx != nullptr) StorePart8(dx + at, count, slope);
      }
    }
    return Sum8(sum) / static_cast<float>(size);
  }

  const Function function_;
};

absl::Status Error(const std::string& input, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("loss of layer '", input, "': ", text));
}

absl::Status CheckShapes(const std::string& input, const Shape& output_shape, const ExampleSpec& examples) {
  const int64_t outputs = output_shape.num_elements();
  if (examples.labels_dtype == v1::DT_INT32) {
    // A split may lack the last classes.
    if (outputs >= examples.classes || (outputs == 1 && examples.classes == 2)) return absl::OkStatus();
    return Error(input,
                 absl::StrCat("the layer has ", outputs, " outputs, but the data has ", examples.classes, " classes"));
  }
  // A vector of one number and a number are the same.
  const bool both_single = outputs == 1 && examples.labels_shape.num_elements() == 1;
  if (output_shape == examples.labels_shape || both_single) return absl::OkStatus();
  return Error(input, absl::StrCat("the layer's output is ", output_shape.ToString(), ", but the labels are ",
                                   examples.labels_shape.ToString()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LossOp>> MakeElementwiseLoss(const config::v1::Loss& config, const std::string& input,
                                                            const Shape& output_shape, const ExampleSpec& examples) {
  const absl::Status shapes = CheckShapes(input, output_shape, examples);
  if (!shapes.ok()) return shapes;
  const auto make = [&](auto function) -> std::unique_ptr<LossOp> {
    return std::make_unique<ElementwiseLoss<decltype(function)>>(config.has_weight() ? config.weight() : 1.0f,
                                                                 output_shape.num_elements(),
                                                                 examples.labels_dtype == v1::DT_INT32, function);
  };
  switch (config.kind_case()) {
    case config::v1::Loss::kSigmoidCrossEntropy:
      return make(SigmoidCrossEntropy());
    case config::v1::Loss::kMeanSquaredError:
      return make(SquaredError());
    case config::v1::Loss::kAbsoluteDifference:
      return make(AbsoluteDifference());
    case config::v1::Loss::kHuber: {
      const float delta = config.huber().has_delta() ? config.huber().delta() : 1.0f;
      if (!(delta > 0) || !std::isfinite(delta)) {
        return Error(input, absl::StrCat("delta is ", delta, ", but must be positive and finite"));
      }
      return make(Huber{delta});
    }
    case config::v1::Loss::kHinge:
      return make(Hinge());
    default:
      return Error(input, absl::StrCat("it has unknown kind ", static_cast<int>(config.kind_case())));
  }
}

}  // namespace lockstep
