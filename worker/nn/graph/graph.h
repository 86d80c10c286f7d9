#ifndef LOCKSTEP_WORKER_NN_GRAPH_GRAPH_H_
#define LOCKSTEP_WORKER_NN_GRAPH_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/layers/layer_op.h"
#include "lockstep/worker/nn/losses/loss_op.h"

namespace lockstep {

// The name by which layers refer to the batch's features.
inline constexpr char kInputName[] = "input";

// A layer and the sources of its values. Nodes are in the configuration's order, inputs first.
struct GraphNode {
  std::string name;
  std::unique_ptr<LayerOp> op;
  // Indices of the input nodes; kFeatures means the batch's features.
  std::vector<int> inputs;
  // The node whose memory holds the output: this node, or the node that it is a view of.
  int storage = 0;
  // The layer's variables, as a range of ModelSpec.variables.
  int first_variable = 0;
  int num_variables = 0;
  // True if a loss, or the prediction, depends on the node.
  bool in_loss = false;
  bool in_prediction = false;
  // True if a loss depends on the node and the node or one of its predecessors has trainable variables.
  bool needs_gradient = false;
};

inline constexpr int kFeatures = -1;

struct GraphLoss {
  std::unique_ptr<LossOp> op;
  // Index of the node whose output is compared with the labels.
  int node = 0;
};

// A ModelConfig that has been checked against the data: the layers, the losses, and the variables they declare.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphLoss> losses;
  v1::ModelSpec spec;
};

// Errors: InvalidArgument names the layer or loss and the numbers or shapes that disagree.
absl::StatusOr<Graph> BuildGraph(const config::v1::ModelConfig& config, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_GRAPH_H_
