#ifndef LOCKSTEP_WORKER_NN_LAYERS_LAYER_OP_H_
#define LOCKSTEP_WORKER_NN_LAYERS_LAYER_OP_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A receiver of the gradients of a layer's variables.
class GradientWriter {
 public:
  virtual ~GradientWriter() = default;
  // Returns the uninitialized buffer of trainable variable `variable`. The caller must write all of its elements.
  virtual float* Buffer(int variable) = 0;
  // Announces that Buffer(variable) is complete, so that sending it can begin. Should be called as early as possible.
  virtual void Final(int variable) = 0;
};

// Maximum number of elements in an example or a variable. Keeps sizes in bytes far from overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 31;

// A forward pass, or a forward and backward pass.
struct Pass {
  ComputeContext* compute = nullptr;
  // Number of examples, at least 1.
  int64_t batch = 0;
  // False in evaluation, which has no dropout and uses moving averages in batch norm.
  bool training = false;
  SlotKey key;
  VariableValues values;
  // The batch's features if they are DT_INT32 [batch, length], otherwise null.
  const int32_t* ids = nullptr;
};

// The computation of a layer. A LayerOp does not own the weights, only the data that Backward needs from Forward (in
// training) and scratch memory that grows with the batch. Values and gradients are row-major [batch, example shape...],
// aligned to kTensorAlignment and owned by the caller. Forward reports errors in a batch (ids out of range); the
// factory reports errors in the configuration.
class LayerOp {
 public:
  explicit LayerOp(Shape output_shape) : output_shape_(std::move(output_shape)) {}
  virtual ~LayerOp() = default;
  LayerOp(const LayerOp&) = delete;
  LayerOp& operator=(const LayerOp&) = delete;

  // The output's shape for one example.
  const Shape& output_shape() const { return output_shape_; }

  virtual absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) = 0;

  // Runs after Forward in training, with the same inputs and output. Writes the gradients of the layer's variables, and
  // the gradient of input i to input_gradients[i] unless that is null. May overwrite output_gradient.
  virtual void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output,
                        float* output_gradient, absl::Span<float* const> input_gradients,
                        GradientWriter* gradients) = 0;

  // Returns true if the output is the input's memory with a different shape. Then neither Forward nor Backward is
  // called.
  virtual bool is_view() const { return false; }

  // Returns true if output_gradient and input_gradients[0] may be the same memory in Backward, which reduces memory
  // traffic.
  virtual bool gradient_in_place() const { return false; }

  // Reports the values of the layer's update ops. Called after Forward in training.
  virtual void ReportUpdates(GradientSink* sink) const {}

  // Returns the number of multiply-adds in Forward for one example, or 0 for memory-bound layers.
  virtual int64_t multiply_adds() const { return 0; }

 private:
  const Shape output_shape_;
};

// The configuration and the input shapes from which a factory creates a layer's op. Also declares the layer's
// variables.
class LayerBuilder {
 public:
  // spec and input_shapes must outlive the builder.
  LayerBuilder(const config::v1::Layer& config, absl::Span<const Shape> input_shapes, v1::ModelSpec* spec);

  // The configuration with defaults (ApplyLayerDefaults).
  const config::v1::Layer& config() const { return config_; }
  // The model to which the layer's variables belong, for use by builders of parts of the layer.
  v1::ModelSpec* spec() const { return spec_; }
  // The shape of one example of each input.
  absl::Span<const Shape> input_shapes() const { return input_shapes_; }
  const Shape& input_shape() const { return input_shapes_[0]; }

  // Returns the shape with these dimensions; InvalidArgument if one is not positive or an example would have more than
  // kMaxElements elements.
  absl::StatusOr<Shape> OutputShape(absl::Span<const int64_t> dims) const;

  // Declares variable "<layer>/<name>". Returns its index in ModelSpec.variables, or InvalidArgument in the same cases
  // as OutputShape.
  absl::StatusOr<int> AddVariable(absl::string_view name, std::initializer_list<int64_t> dims,
                                  const v1::Initializer& initializer, bool trainable = true);
  // Declares a moving average of non-trainable variable `variable`; returns its index in ModelSpec.update_ops.
  int AddMovingAverage(int variable, float decay, bool zero_debias = false);

  // Returns InvalidArgument if the number does not denote an activation.
  absl::Status CheckActivation(config::v1::Activation activation) const;

  // Returns InvalidArgument "layer '<name>': <parts>".
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ErrorWithText(absl::StrCat(parts...));
  }

 private:
  absl::Status ErrorWithText(absl::string_view text) const;
  absl::StatusOr<Shape> CheckedShape(absl::string_view what, absl::Span<const int64_t> dims) const;

  const config::v1::Layer config_;
  const absl::Span<const Shape> input_shapes_;
  v1::ModelSpec* const spec_;
};

using LayerFactory = absl::StatusOr<std::unique_ptr<LayerOp>> (*)(LayerBuilder* builder);

// Returns an initializer with this value.
v1::Initializer ConstantInitializer(float value);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_LAYER_OP_H_
