#include "lockstep/worker/nn/losses/softmax_loss.h"

#include "absl/strings/str_cat.h"
#include "lockstep/kernels/nn/losses.h"

namespace lockstep {
namespace {

class SoftmaxLoss : public LossOp {
 public:
  SoftmaxLoss(float weight, int64_t classes, float smoothing, bool class_labels)
      : LossOp(weight, classes, class_labels), smoothing_(smoothing) {}

 private:
  // Computes the loss for a class label. Every class has the target smoothing / classes; the label's class has an
  // additional 1 - smoothing.
  float ClassRow(const float* x, int32_t label, float scale, float* dx) const override {
    return SoftmaxLossOfLabel({outputs(), x, scale, dx}, smoothing_, label);
  }

  // Computes the loss for a vector of targets, whose sum need not be 1.
  float TargetRow(const float* x, const float* targets, float scale, float* dx) const override {
    return SoftmaxLossOfTargets({outputs(), x, scale, dx}, smoothing_, targets);
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
    return error("the layer has ", output_shape.dim(0), " outputs, but the data has ", examples.classes,
                 " classes: the greatest label is ", examples.classes - 1, ", and classes begin at 0; the layer needs ",
                 examples.classes, " outputs, or the classes other numbers");
  }
  if (!class_labels && output_shape != examples.labels_shape) {
    return error("the layer's output is ", output_shape.ToString(), ", but the labels are ",
                 examples.labels_shape.ToString(), " numbers; integer labels are classes, float labels are numbers");
  }
  return std::make_unique<SoftmaxLoss>(config.has_weight() ? config.weight() : 1.0f, output_shape.dim(0), smoothing,
                                       class_labels);
}

}  // namespace lockstep
