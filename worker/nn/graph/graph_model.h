#ifndef LOCKSTEP_WORKER_NN_GRAPH_GRAPH_MODEL_H_
#define LOCKSTEP_WORKER_NN_GRAPH_GRAPH_MODEL_H_

#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/graph/graph.h"
#include "lockstep/worker/nn/graph/regularization.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/model_registry.h"

namespace lockstep {

// Creates the model that `config` describes, built-in or registered, for examples as described by `examples`.
//
// Errors: InvalidArgument names the layer and the values that disagree; NotFound names an unknown registered model.
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const config::v1::ModelConfig& config, const ExampleSpec& examples,
                                                   const ModelOptions& options = {});

// A model composed of the built-in layers. The values and gradients of all layers are in memory that is kept between
// batches and grows to fit the largest batch, so a step does not allocate memory. Results depend only on the arguments,
// to the last bit: see gemm.h and ComputeContext.
class GraphModel : public Model {
 public:
  static absl::StatusOr<std::unique_ptr<GraphModel>> Create(const config::v1::ModelConfig& config,
                                                            const ExampleSpec& examples,
                                                            const ModelOptions& options = {});

  const v1::ModelSpec& spec() const override { return graph_.spec; }
  // Returns one part for each layer, one for the losses, one for the regularizers, and one for the spec of an example.
  std::vector<Part> Fingerprint() const override { return fingerprint_; }
  // Returns the layers and their shapes, for a summary.
  const Graph& graph() const { return graph_; }

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override;
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override;
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override;
  absl::StatusOr<Evaluation> PredictAndEvaluateLoss(VariableValues values, const Batch& batch) override;

 private:
  class Gradients;

  // Memory for a node's output and the location of its gradient. Not used for views.
  struct NodeMemory {
    Workspace<float> value;
    // Index in gradients_ of the node's gradient in this pass; kNoGradient until the first contribution is written.
    int gradient = kNoGradient;
  };
  static constexpr int kNoGradient = -1;

  GraphModel(const config::v1::ModelConfig& config, Graph graph, Regularization regularization,
             const ExampleSpec& examples, const ModelOptions& options);

  absl::Status CheckBatch(VariableValues values, const Batch& batch) const;
  Pass MakePass(VariableValues values, const Batch& batch, const SlotKey& key, bool training);
  // Computes the nodes for which one of `wanted` is true.
  absl::Status Forward(const Pass& pass, const Batch& batch, std::initializer_list<bool GraphNode::*> wanted);
  // Returns a copy of the last node's output.
  Tensor Prediction(const Batch& batch);
  // Returns the sum of the losses and the regularizers. If `with_gradients` is true, also writes the gradients of the
  // losses with respect to their nodes' outputs.
  float ComputeLoss(const Pass& pass, const Batch& batch, bool with_gradients);
  void BackwardNode(const Pass& pass, const Batch& batch, int index, Gradients* gradients);
  float* GradientOf(int node) { return gradients_[memory_[graph_.nodes[node].storage].gradient].data(); }
  // Frees all gradients of the last pass.
  void FreeGradients();
  // Returns the index in gradients_ of a buffer with memory for `size` elements: the most recently freed buffer or, if
  // none is free, a new one.
  int TakeGradient(int64_t size);
  // Returns the buffer to which a reader of `node` writes its contribution to the node's gradient. For the first
  // reader, this is the memory of the gradient itself. For later readers, it is extra_[input], where `input` is the
  // index of `node` among the reader's inputs, and AddContribution adds it to the gradient.
  float* ContributionBuffer(const Pass& pass, int node, size_t input);
  void AddContribution(const Pass& pass, int node, const float* contribution);

  const float* ValueOf(int node, const Batch& batch);
  int64_t ElementsOf(int node) const { return graph_.nodes[node].op->output_shape().num_elements(); }

  Graph graph_;
  Regularization regularization_;
  const ExampleSpec examples_;
  const std::vector<Part> fingerprint_;
  ComputeContext compute_;
  std::vector<NodeMemory> memory_;
  // A gradient buffer is in use from its first contribution until the node's backward pass has ended. Then it may be
  // reused for another gradient.
  std::vector<Workspace<float>> gradients_;
  std::vector<int> free_gradients_;
  // Indexed by the inputs of the node whose backward pass is running.
  std::vector<Workspace<float>> extra_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_GRAPH_MODEL_H_
