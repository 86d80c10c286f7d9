#ifndef LOCKSTEP_WORKER_NN_TESTING_LAYER_RUNNER_H_
#define LOCKSTEP_WORKER_NN_TESTING_LAYER_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/layers/layer_op.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {

// Returns the status of making a layer of `config_text`, a config::v1::Layer, over inputs of these example shapes.
absl::Status LayerStatus(LayerFactory factory, const std::string& config_text, const std::vector<Shape>& inputs);

// A layer without a model around it: random inputs and variables, and memory for the results.
// Not thread-safe.
class LayerRunner {
 public:
  struct Options {
    int64_t batch = 1;
    int threads = 1;
    SlotKey key{1, 2, 3};
    // The batch's features if they are ids.
    std::vector<int32_t> ids;
  };
  // The arrays into which Backward writes the gradients of the inputs.
  enum class InputGradients { kSeparate, kInPlace, kNone };

  // LayerStatus of these arguments must be OK. The layer must be called 'x'.
  LayerRunner(LayerFactory factory, const std::string& config_text, const std::vector<Shape>& inputs,
              const Options& options);

  const LayerOp& op() const { return *op_; }
  const v1::ModelSpec& spec() const { return spec_; }
  absl::Span<float> input(int i = 0) { return inputs_[i].values(); }
  // Variable "x/<name>".
  absl::Span<float> variable(const std::string& name) { return variables_->value("x/" + name); }
  // Computes only the first `batch` examples.
  void set_batch(int64_t batch) { pass_.batch = batch; }

  absl::Status Forward(bool training = true);
  absl::Span<const float> output() const { return output_->values(); }

  // Computes the gradients of sum_j weights[j] output[j]; call it after Forward in training.
  void Backward(absl::Span<const float> weights, InputGradients where = InputGradients::kSeparate);
  absl::Span<const float> input_gradient(int i = 0) const { return input_gradients_[i].values(); }
  absl::Span<const float> gradient(const std::string& name) const { return gradients_.at("x/" + name).values(); }

  // Describes writes outside of the layer's arrays and gradients announced too often or never; empty if there are none.
  const std::string& violations() const { return violations_; }

 private:
  class Gradients;

  std::vector<const float*> Inputs() const;
  void Check(const ResultArray& array, const std::string& name);

  v1::ModelSpec spec_;
  std::unique_ptr<LayerOp> op_;
  std::unique_ptr<TestVariables> variables_;
  ComputeContext compute_;
  const std::vector<int32_t> ids_;
  Pass pass_;
  std::vector<ResultArray> inputs_;
  std::unique_ptr<ResultArray> output_;
  std::vector<ResultArray> input_gradients_;
  // Keyed by the variable's name: its gradient, and how often it was announced.
  std::map<std::string, ResultArray> gradients_;
  std::map<std::string, int> announced_;
  std::string violations_;
};

// The arguments are the values of the layer's only input, then the values of the variables.
using LayerReference = std::vector<double>(const std::vector<std::vector<double>>& arguments);

// Runs the layer forward and backward in training mode. Describes where the output, the gradient of the input, or the
// gradient of one of the trainable `variables` differs by more than `tolerance` (FirstDifference) from that of
// `reference`, whose derivatives are computed numerically. Also describes the runner's violations. Returns an empty
// string if there is nothing to describe.
std::string CompareWithReference(LayerRunner* runner, const std::vector<std::string>& variables,
                                 absl::FunctionRef<LayerReference> reference, double tolerance);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TESTING_LAYER_RUNNER_H_
