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

// The model of `config`, built in or registered, for examples like `examples`.
// Errors: InvalidArgument names the layer and what disagrees; NotFound, an unknown registered name.
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const config::v1::ModelConfig& config, const ExampleSpec& examples,
                                                   const ModelOptions& options = {});

// A model made of the built-in layers. Values and gradients of all layers stand in memory that
// is kept between batches and grows with the largest one, so a step allocates nothing.
// The bits of a result depend on the arguments alone: see gemm.h, simd.h and ComputeContext.
class GraphModel : public Model {
 public:
  static absl::StatusOr<std::unique_ptr<GraphModel>> Create(const config::v1::ModelConfig& config,
                                                            const ExampleSpec& examples,
                                                            const ModelOptions& options = {});

  const v1::ModelSpec& spec() const override { return graph_.spec; }
  // Each layer, the losses, the regularizers, and what an example looks like.
  std::vector<Part> Fingerprint() const override { return fingerprint_; }
  // The layers and their shapes, for a summary.
  const Graph& graph() const { return graph_; }

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override;
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override;
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override;
  absl::StatusOr<Evaluation> PredictAndEvaluateLoss(VariableValues values, const Batch& batch) override;

 private:
  class Gradients;

  // What one node computed. Views have none.
  struct NodeMemory {
    Workspace<float> value;
    // Where its gradient stands in this pass, once something has been written to it: an index of gradients_.
    int gradient = kNoGradient;
  };
  static constexpr int kNoGradient = -1;

  GraphModel(const config::v1::ModelConfig& config, Graph graph, Regularization regularization,
             const ExampleSpec& examples, const ModelOptions& options);

  absl::Status CheckBatch(VariableValues values, const Batch& batch) const;
  Pass MakePass(VariableValues values, const Batch& batch, const SlotKey& key, bool training);
  // Computes the nodes for which one of `wanted` holds.
  absl::Status Forward(const Pass& pass, const Batch& batch, std::initializer_list<bool GraphNode::*> wanted);
  // A copy of what the last node has computed.
  Tensor Prediction(const Batch& batch);
  // The losses and the regularizers; with gradients, writes those of the losses' nodes.
  float ComputeLoss(const Pass& pass, const Batch& batch, bool with_gradients);
  void BackwardNode(const Pass& pass, const Batch& batch, int index, Gradients* gradients);
  float* GradientOf(int node) { return gradients_[memory_[graph_.nodes[node].storage].gradient].data(); }
  // Forgets all gradients of the last pass.
  void FreeGradients();
  // Memory of gradients_ for `size` elements, that which was freed last when there is any.
  int TakeGradient(int64_t size);
  // Where a reader of `node` writes its part of the gradient: the node's memory for the first one, extra_[input],
  // `input` being its number among the reader's inputs, for those after it, which AddContribution adds.
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
  // Gradients live from their first part to the node's backward pass; then the memory is free for another.
  std::vector<Workspace<float>> gradients_;
  std::vector<int> free_gradients_;
  // [inputs of the node whose gradient is computed]
  std::vector<Workspace<float>> extra_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_GRAPH_MODEL_H_
