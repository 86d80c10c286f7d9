#include "lockstep/kernels/nn/losses.h"

#include <algorithm>
#include <limits>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/losses.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/eight-inl.h"
#include "lockstep/kernels/vectors/math-inl.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using Part = hn::Vec<EightTag>;

HWY_INLINE Part Constant(float x) { return hn::Set(EightTag(), x); }

// Returns how many of the eight elements starting at `at` are in the row.
HWY_INLINE int64_t CountAt(int64_t size, int64_t at) { return std::min<int64_t>(8, size - at); }

struct Denominator {
  float largest;
  // The sum of exp(x - largest).
  float sum;
};

// Unless `exponentials` is null, writes exp(x - largest) there.
HWY_INLINE Denominator SumExponentials(int64_t size, const float* x, float* exponentials) {
  const EightTag d;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Eight largest = SetEight(kLowest);
  for (int64_t at = 0; at < size; at += 8) {
    largest = MapEight([&](Part a, Part b) HWY_ATTR { return AtLeast(d, a, b); }, largest,
                       LoadEight(x + at, CountAt(size, at), kLowest));
  }
  Denominator result{LargestOfEight(largest), 0};
  const Part shift = Constant(result.largest);
  Eight sum = SetEight(0);
  for (int64_t at = 0; at < size; at += 8) {
    const int64_t count = CountAt(size, at);
    const Eight e =
        MapEight([&](Part v) HWY_ATTR { return Exp(d, hn::Sub(v, shift)); }, LoadEight(x + at, count, result.largest));
    sum = AddEight(sum, KeepFirst(e, count));
    if (exponentials != nullptr) StoreEight(e, exponentials + at, count);
  }
  result.sum = SumEight(sum);
  return result;
}

HWY_INLINE float LogSum(const Denominator& d) { return hn::GetLane(Log(EightTag(), Constant(d.sum))) + d.largest; }

// Replaces the exponentials in dx by scale * (total * softmax(x) - offset): the gradient without the labels' part.
HWY_INLINE void FinishSoftmax(const Denominator& denominator, float total, float offset, const LossRow& row) {
  const Floats d;
  const FloatVector factor = hn::Set(d, total / denominator.sum);
  const FloatVector scale = hn::Set(d, row.scale);
  Transform(row.size, row.dx, row.dx,
            [&](FloatVector e) HWY_ATTR { return hn::Mul(scale, hn::Sub(hn::Mul(e, factor), hn::Set(d, offset))); });
}

HWY_INLINE float SumOfDistances(int64_t size, const float* x, float log_sum) {
  Eight sum = SetEight(0);
  for (int64_t at = 0; at < size; at += 8) {
    const Eight v = LoadEight(x + at, CountAt(size, at), log_sum);
    sum = AddEight(sum, MapEight([&](Part part) HWY_ATTR { return hn::Sub(Constant(log_sum), part); }, v));
  }
  return SumEight(sum);
}

float SoftmaxOfLabel(const LossRow& row, float smoothing, int32_t label) {
  const Denominator denominator = SumExponentials(row.size, row.x, row.dx);
  const float log_sum = LogSum(denominator);
  const float offset = smoothing / static_cast<float>(row.size);
  if (row.dx != nullptr) {
    FinishSoftmax(denominator, 1, offset, row);
    row.dx[label] -= row.scale * (1 - smoothing);
  }
  if (smoothing == 0) return log_sum - row.x[label];
  return (1 - smoothing) * (log_sum - row.x[label]) + offset * SumOfDistances(row.size, row.x, log_sum);
}

float SoftmaxOfTargets(const LossRow& row, float smoothing, const float* targets) {
  const Denominator denominator = SumExponentials(row.size, row.x, row.dx);
  const float log_sum = LogSum(denominator);
  const float offset = smoothing / static_cast<float>(row.size);
  Eight loss = SetEight(0);
  Eight total = SetEight(0);
  for (int64_t at = 0; at < row.size; at += 8) {
    const int64_t count = CountAt(row.size, at);
    const auto smooth = [&](Part t) HWY_ATTR { return hn::Add(hn::Mul(t, Constant(1 - smoothing)), Constant(offset)); };
    const Eight target = KeepFirst(MapEight(smooth, LoadEight(targets + at, count, 0)), count);
    const auto weigh = [&](Part t, Part x) HWY_ATTR { return hn::Mul(t, hn::Sub(Constant(log_sum), x)); };
    loss = AddEight(loss, MapEight(weigh, target, LoadEight(row.x + at, count, log_sum)));
    total = AddEight(total, target);
  }
  if (row.dx != nullptr) {
    FinishSoftmax(denominator, SumEight(total), offset, row);
    const Floats d;
    const FloatVector weight = hn::Set(d, row.scale * (1 - smoothing));
    Transform(row.size, row.dx, targets, row.dx,
              [&](FloatVector g, FloatVector t) HWY_ATTR { return hn::Sub(g, hn::Mul(weight, t)); });
  }
  return SumEight(loss);
}

HWY_INLINE Part AbsOf(Part x) { return hn::IfThenElse(hn::Lt(x, hn::Zero(EightTag())), hn::Neg(x), x); }
HWY_INLINE Part SignOf(Part x) {
  const Part zero = hn::Zero(EightTag());
  return hn::IfThenElse(hn::Gt(x, zero), Constant(1), hn::IfThenElseZero(hn::Lt(x, zero), Constant(-1)));
}

// Each functor sets `loss` to l(x, t) and returns dl/dx.
struct SigmoidCrossEntropy {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    const EightTag d;
    const Part zero = hn::Zero(d);
    const Part e = Exp(d, hn::Neg(AbsOf(x)));
    const Part one_and_e = hn::Add(Constant(1), e);
    *loss = hn::Add(hn::Sub(AtLeast(d, zero, x), hn::Mul(x, t)), Log(d, one_and_e));
    const Part positive = hn::Div(Constant(1), one_and_e);
    return hn::Sub(hn::IfThenElse(hn::Lt(x, zero), hn::Mul(e, positive), positive), t);
  }
};

struct SquaredError {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    const Part e = hn::Sub(x, t);
    *loss = hn::Mul(e, e);
    return hn::Add(e, e);
  }
};

struct AbsoluteDifference {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    *loss = AbsOf(hn::Sub(x, t));
    return SignOf(hn::Sub(x, t));
  }
};

struct Huber {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    const Part e = hn::Sub(x, t);
    const Part size = AbsOf(e);
    const auto far = hn::Gt(size, Constant(delta));
    const Part linear = hn::Sub(hn::Mul(Constant(delta), size), Constant(0.5f * delta * delta));
    *loss = hn::IfThenElse(far, linear, hn::Mul(hn::Mul(Constant(0.5f), e), e));
    return hn::IfThenElse(far, hn::Mul(Constant(delta), SignOf(e)), e);
  }
  float delta;
};

struct Hinge {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    const Part zero = hn::Zero(EightTag());
    const Part sign = hn::Sub(hn::Add(t, t), Constant(1));
    const Part margin = hn::Sub(Constant(1), hn::Mul(sign, x));
    *loss = AtLeast(EightTag(), zero, margin);
    return hn::IfThenElseZero(hn::Gt(margin, zero), hn::Neg(sign));
  }
};

struct LogLoss {
  HWY_INLINE Part operator()(Part x, Part t, Part* loss) const {
    const EightTag d;
    const Part yes = hn::Add(x, Constant(epsilon));
    const Part no = hn::Add(hn::Sub(Constant(1), x), Constant(epsilon));
    const Part rest = hn::Sub(Constant(1), t);
    *loss = hn::Neg(hn::Add(hn::Mul(t, Log(d, yes)), hn::Mul(rest, Log(d, no))));
    return hn::Sub(hn::Div(rest, no), hn::Div(t, yes));
  }
  float epsilon;
};

// targets(at, count) returns the eight targets starting at `at`.
template <class Function, class Targets>
HWY_INLINE float MeanLoss(Function function, const LossRow& row, Targets targets) {
  const auto size = static_cast<float>(row.size);
  const Part scale = Constant(row.scale / size);
  Eight sum = SetEight(0);
  for (int64_t at = 0; at < row.size; at += 8) {
    const int64_t count = CountAt(row.size, at);
    const Eight x = LoadEight(row.x + at, count, 0);
    const Eight t = targets(at, count);
    Eight loss, slope;
#pragma GCC unroll 2
    for (int i = 0; i < kEightParts; ++i) {
      slope.parts[i] = hn::Mul(function(x.parts[i], t.parts[i], &loss.parts[i]), scale);
    }
    sum = AddEight(sum, KeepFirst(loss, count));
    if (row.dx != nullptr) StoreEight(slope, row.dx + at, count);
  }
  return SumEight(sum) / size;
}

template <class Targets>
HWY_INLINE float LossOfRow(const ElementwiseLossKernel& loss, const LossRow& row, Targets targets) {
  switch (loss.type) {
    case ElementwiseLossType::kSigmoidCrossEntropy:
      return MeanLoss(SigmoidCrossEntropy(), row, targets);
    case ElementwiseLossType::kSquaredError:
      return MeanLoss(SquaredError(), row, targets);
    case ElementwiseLossType::kAbsoluteDifference:
      return MeanLoss(AbsoluteDifference(), row, targets);
    case ElementwiseLossType::kHuber:
      return MeanLoss(Huber{loss.delta}, row, targets);
    case ElementwiseLossType::kHinge:
      return MeanLoss(Hinge(), row, targets);
    case ElementwiseLossType::kLogLoss:
      return MeanLoss(LogLoss{loss.epsilon}, row, targets);
  }
  return 0;
}

float LossOfLabel(const ElementwiseLossKernel& loss, const LossRow& row, int32_t label) {
  return LossOfRow(loss, row, [&](int64_t at, int64_t) HWY_ATTR {
    if (row.size == 1) return SetEight(static_cast<float>(label));
    float lanes[8] = {};
    if (label >= at && label < at + 8) lanes[label - at] = 1;
    return LoadEight(lanes, 8, 0);
  });
}

float LossOfTargets(const ElementwiseLossKernel& loss, const LossRow& row, const float* targets) {
  return LossOfRow(loss, row, [&](int64_t at, int64_t count) HWY_ATTR { return LoadEight(targets + at, count, 0); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(SoftmaxOfLabel);
HWY_EXPORT(SoftmaxOfTargets);
HWY_EXPORT(LossOfLabel);
HWY_EXPORT(LossOfTargets);

float SoftmaxLossOfLabel(const LossRow& row, float smoothing, int32_t label) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxOfLabel)(row, smoothing, label);
}
float SoftmaxLossOfTargets(const LossRow& row, float smoothing, const float* targets) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxOfTargets)(row, smoothing, targets);
}
float ElementwiseLossOfLabel(const ElementwiseLossKernel& loss, const LossRow& row, int32_t label) {
  return HWY_DYNAMIC_DISPATCH(LossOfLabel)(loss, row, label);
}
float ElementwiseLossOfTargets(const ElementwiseLossKernel& loss, const LossRow& row, const float* targets) {
  return HWY_DYNAMIC_DISPATCH(LossOfTargets)(loss, row, targets);
}

}  // namespace lockstep
#endif  // HWY_ONCE
