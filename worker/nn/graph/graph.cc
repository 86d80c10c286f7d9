#include "lockstep/worker/nn/graph/graph.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/worker/nn/layers/activation_layer.h"
#include "lockstep/worker/nn/layers/add.h"
#include "lockstep/worker/nn/layers/concat.h"
#include "lockstep/worker/nn/layers/dense.h"
#include "lockstep/worker/nn/layers/dropout.h"
#include "lockstep/worker/nn/layers/embedding.h"
#include "lockstep/worker/nn/layers/images/conv2d.h"
#include "lockstep/worker/nn/layers/images/depthwise_conv2d.h"
#include "lockstep/worker/nn/layers/images/global_average_pool.h"
#include "lockstep/worker/nn/layers/images/pool.h"
#include "lockstep/worker/nn/layers/images/separable_conv2d.h"
#include "lockstep/worker/nn/layers/normalization/batch_norm.h"
#include "lockstep/worker/nn/layers/normalization/layer_norm.h"
#include "lockstep/worker/nn/layers/normalization/local_response_norm.h"
#include "lockstep/worker/nn/layers/reshape.h"
#include "lockstep/worker/nn/losses/loss.h"

namespace lockstep {
namespace {

LayerFactory FactoryOf(config::v1::Layer::KindCase kind) {
  switch (kind) {
    case config::v1::Layer::kDense:
      return MakeDense;
    case config::v1::Layer::kBatchNorm:
      return MakeBatchNorm;
    case config::v1::Layer::kDropout:
      return MakeDropout;
    case config::v1::Layer::kFlatten:
      return MakeFlatten;
    case config::v1::Layer::kReshape:
      return MakeReshape;
    case config::v1::Layer::kActivation:
      return MakeActivationLayer;
    case config::v1::Layer::kConv2D:
      return MakeConv2d;
    case config::v1::Layer::kMaxPool:
      return MakeMaxPool;
    case config::v1::Layer::kAveragePool:
      return MakeAveragePool;
    case config::v1::Layer::kLayerNorm:
      return MakeLayerNorm;
    case config::v1::Layer::kEmbedding:
      return MakeEmbedding;
    case config::v1::Layer::kGlobalAveragePool:
      return MakeGlobalAveragePool;
    case config::v1::Layer::kAdd:
      return MakeAdd;
    case config::v1::Layer::kConcat:
      return MakeConcat;
    case config::v1::Layer::kDepthwiseConv2D:
      return MakeDepthwiseConv2d;
    case config::v1::Layer::kSeparableConv2D:
      return MakeSeparableConv2d;
    case config::v1::Layer::kLrn:
      return MakeLocalResponseNorm;
    default:
      return nullptr;
  }
}

absl::Status CheckExamples(const ExampleSpec& examples) {
  if (examples.features_dtype != v1::DT_FLOAT && examples.features_dtype != v1::DT_INT32) {
    return absl::InvalidArgumentError(
        absl::StrCat("features are ", NameOf(examples.features_dtype), ", but must be float32 or int32"));
  }
  for (const int64_t dim : examples.features_shape.dims()) {
    if (dim <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("features have shape ", examples.features_shape.ToString(), ": no dimension may be ", dim));
    }
  }
  if (examples.labels_dtype == v1::DT_FLOAT) return absl::OkStatus();
  if (examples.labels_dtype != v1::DT_INT32 || examples.labels_shape.rank() != 0 || examples.classes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels are ", NameOf(examples.labels_dtype), " ", examples.labels_shape.ToString(), " of ",
                     examples.classes, " classes, but must be one int32 class of at least 1, or a float32 vector"));
  }
  return absl::OkStatus();
}

// A builder to which layers and losses are added one at a time.
class GraphBuilder {
 public:
  explicit GraphBuilder(const ExampleSpec& examples) : examples_(examples) { index_[kInputName] = kFeatures; }

  absl::Status AddLayer(const config::v1::Layer& layer);
  absl::Status AddLoss(const config::v1::Loss& loss);
  // Marks the nodes on which the losses and the prediction depend, and returns the graph.
  absl::StatusOr<Graph> Finish();

 private:
  const Shape& OutputShape(int node) const {
    return node == kFeatures ? examples_.features_shape : graph_.nodes[node].op->output_shape();
  }
  // Returns the layer's inputs as node indices.
  absl::StatusOr<std::vector<int>> Inputs(const config::v1::Layer& layer) const;
  absl::Status CheckInputs(const config::v1::Layer& layer, const std::vector<int>& inputs) const;

  const ExampleSpec& examples_;
  absl::flat_hash_map<std::string, int> index_;
  Graph graph_;
};

absl::Status LayerError(const config::v1::Layer& layer, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("layer '", layer.name(), "': ", text));
}

absl::StatusOr<std::vector<int>> GraphBuilder::Inputs(const config::v1::Layer& layer) const {
  std::vector<int> inputs;
  for (const std::string& name : layer.input()) {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      return LayerError(layer, absl::StrCat("its input '", name, "' is neither a preceding layer nor 'input'"));
    }
    inputs.push_back(found->second);
  }
  if (inputs.empty()) inputs.push_back(static_cast<int>(graph_.nodes.size()) - 1);  // kFeatures for the first.
  return inputs;
}

absl::Status GraphBuilder::CheckInputs(const config::v1::Layer& layer, const std::vector<int>& inputs) const {
  const bool reads_several =
      layer.kind_case() == config::v1::Layer::kAdd || layer.kind_case() == config::v1::Layer::kConcat;
  if (!reads_several && inputs.size() != 1) {
    return LayerError(layer,
                      absl::StrCat("it has ", inputs.size(),
                                   " inputs, but reads 1; an add layer sums several, a concat layer joins them"));
  }
  for (const int input : inputs) {
    const bool is_ids = input == kFeatures && examples_.features_dtype == v1::DT_INT32;
    const bool is_embedding = layer.kind_case() == config::v1::Layer::kEmbedding;
    if (is_ids && !is_embedding) {
      return LayerError(layer,
                        "the features are int32 ids, which only an embedding layer reads; numbers are a float32 "
                        "array (x.astype('float32') in NumPy) or a csv column of type FLOAT");
    }
    if (!is_ids && is_embedding) {
      return LayerError(layer, "an embedding layer reads the batch's int32 ids; its input is float32");
    }
  }
  return absl::OkStatus();
}

absl::Status GraphBuilder::AddLayer(const config::v1::Layer& layer) {
  const int index = static_cast<int>(graph_.nodes.size());
  if (layer.name().empty()) return absl::InvalidArgumentError(absl::StrCat("layer ", index, " has no name"));
  if (!index_.emplace(layer.name(), index).second) {
    return LayerError(layer, layer.name() == kInputName ? "this name stands for the batch's features"
                                                        : absl::StrCat("layers ", index_[layer.name()], " and ", index,
                                                                       " have the same name"));
  }
  const LayerFactory factory = FactoryOf(layer.kind_case());
  if (factory == nullptr) return LayerError(layer, "it has no kind");
  GraphNode node;
  node.name = layer.name();
  index_.erase(layer.name());  // A layer must not read itself.
  ASSIGN_OR_RETURN(node.inputs, Inputs(layer));
  index_[layer.name()] = index;
  RETURN_IF_ERROR(CheckInputs(layer, node.inputs));
  std::vector<Shape> shapes;
  for (const int input : node.inputs) shapes.push_back(OutputShape(input));
  node.first_variable = graph_.spec.variables_size();
  LayerBuilder builder(layer, shapes, &graph_.spec);
  ASSIGN_OR_RETURN(node.op, factory(&builder));
  node.num_variables = graph_.spec.variables_size() - node.first_variable;
  node.storage = index;
  if (node.op->is_view()) {
    const int input = node.inputs[0];
    node.storage = input == kFeatures ? kFeatures : graph_.nodes[input].storage;
  }
  graph_.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status GraphBuilder::AddLoss(const config::v1::Loss& loss) {
  GraphLoss result;
  result.node = static_cast<int>(graph_.nodes.size()) - 1;
  if (!loss.input().empty()) {
    const auto found = index_.find(loss.input());
    if (found == index_.end() || found->second == kFeatures) {
      return absl::InvalidArgumentError(
          absl::StrCat("loss ", graph_.losses.size(), ": its input '", loss.input(), "' is not a layer"));
    }
    result.node = found->second;
  }
  const GraphNode& node = graph_.nodes[result.node];
  ASSIGN_OR_RETURN(result.op, CreateLoss(loss, node.name, node.op->output_shape(), examples_));
  graph_.losses.push_back(std::move(result));
  return absl::OkStatus();
}

absl::StatusOr<Graph> GraphBuilder::Finish() {
  std::vector<GraphNode>& nodes = graph_.nodes;
  for (const GraphLoss& loss : graph_.losses) nodes[loss.node].in_loss = true;
  nodes.back().in_prediction = true;
  for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    for (const int input : nodes[i].inputs) {
      if (input == kFeatures) continue;
      nodes[input].in_loss |= nodes[i].in_loss;
      nodes[input].in_prediction |= nodes[i].in_prediction;
    }
  }
  for (GraphNode& node : nodes) {
    if (node.num_variables > 0 && !node.in_loss) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer '", node.name, "': no loss depends on its variables, so they would never be trained"));
    }
    bool trainable = false;
    for (int v = 0; v < node.num_variables; ++v)
      trainable |= graph_.spec.variables(node.first_variable + v).trainable();
    for (const int input : node.inputs) trainable |= input != kFeatures && nodes[input].needs_gradient;
    node.needs_gradient = trainable && node.in_loss;
  }
  return std::move(graph_);
}

}  // namespace

absl::StatusOr<Graph> BuildGraph(const config::v1::ModelConfig& config, const ExampleSpec& examples) {
  if (config.layer().empty()) return absl::InvalidArgumentError("the model has no layers");
  if (config.loss().empty()) return absl::InvalidArgumentError("the model has no loss");
  RETURN_IF_ERROR(CheckExamples(examples));
  GraphBuilder builder(examples);
  for (int i = 0; i < config.layer_size(); ++i) {
    RETURN_IF_ERROR(InField(absl::StrCat("model.layer[", i, "]"), builder.AddLayer(config.layer(i))));
  }
  for (int i = 0; i < config.loss_size(); ++i) {
    RETURN_IF_ERROR(InField(absl::StrCat("model.loss[", i, "]"), builder.AddLoss(config.loss(i))));
  }
  return builder.Finish();
}

}  // namespace lockstep
