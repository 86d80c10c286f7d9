#include "lockstep/worker/nn/losses/elementwise_loss.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/kernels/nn/losses.h"

namespace lockstep {
namespace {

class ElementwiseLoss : public LossOp {
 public:
  ElementwiseLoss(float weight, int64_t outputs, bool class_labels, const ElementwiseLossKernel& kernel)
      : LossOp(weight, outputs, class_labels), kernel_(kernel) {}

 private:
  float ClassRow(const float* x, int32_t label, float scale, float* dx) const override {
    return ElementwiseLossOfLabel(kernel_, {outputs(), x, scale, dx}, label);
  }
  float TargetRow(const float* x, const float* targets, float scale, float* dx) const override {
    return ElementwiseLossOfTargets(kernel_, {outputs(), x, scale, dx}, targets);
  }

  const ElementwiseLossKernel kernel_;
};

absl::Status Error(const std::string& input, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("loss of layer '", input, "': ", text));
}

absl::Status CheckShapes(const std::string& input, const Shape& output_shape, const ExampleSpec& examples) {
  const int64_t outputs = output_shape.num_elements();
  if (examples.labels_dtype == v1::DT_INT32) {
    // There may be more outputs than classes, since a split may lack the highest classes.
    if (outputs >= examples.classes || (outputs == 1 && examples.classes == 2)) return absl::OkStatus();
    return Error(input, absl::StrCat("the layer has ", outputs, " outputs, but the data has ", examples.classes,
                                     " classes: the greatest label is ", examples.classes - 1,
                                     ", and classes begin at 0; the layer needs ", examples.classes,
                                     " outputs, or the classes other numbers"));
  }
  // A vector of one element matches a scalar.
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
  const auto make = [&](ElementwiseLossType type, float delta, float epsilon = 0) -> std::unique_ptr<LossOp> {
    return std::make_unique<ElementwiseLoss>(config.has_weight() ? config.weight() : 1.0f, output_shape.num_elements(),
                                             examples.labels_dtype == v1::DT_INT32,
                                             ElementwiseLossKernel{type, delta, epsilon});
  };
  switch (config.kind_case()) {
    case config::v1::Loss::kSigmoidCrossEntropy:
      return make(ElementwiseLossType::kSigmoidCrossEntropy, 0);
    case config::v1::Loss::kMeanSquaredError:
      return make(ElementwiseLossType::kSquaredError, 0);
    case config::v1::Loss::kAbsoluteDifference:
      return make(ElementwiseLossType::kAbsoluteDifference, 0);
    case config::v1::Loss::kHuber: {
      const float delta = config.huber().has_delta() ? config.huber().delta() : 1.0f;
      if (!(delta > 0) || !std::isfinite(delta)) {
        return Error(input, absl::StrCat("delta is ", delta, ", but must be positive and finite"));
      }
      return make(ElementwiseLossType::kHuber, delta);
    }
    case config::v1::Loss::kHinge:
      return make(ElementwiseLossType::kHinge, 0);
    case config::v1::Loss::kLogLoss: {
      const float epsilon = config.log_loss().has_epsilon() ? config.log_loss().epsilon() : 1e-7f;
      if (!(epsilon >= 0) || !std::isfinite(epsilon)) {
        return Error(input, absl::StrCat("epsilon is ", epsilon, ", but must be 0 or more and finite"));
      }
      return make(ElementwiseLossType::kLogLoss, 0, epsilon);
    }
    default:
      return Error(input, absl::StrCat("it has unknown kind ", static_cast<int>(config.kind_case())));
  }
}

}  // namespace lockstep
