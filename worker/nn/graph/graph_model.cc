#include "lockstep/worker/nn/graph/graph_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/elementwise.h"
#include "lockstep/worker/nn/graph/fuse_activations.h"
#include "lockstep/worker/nn/losses/loss.h"

namespace lockstep {
namespace {

// Number of elements that are processed together when gradients are added.
constexpr int64_t kBlock = 16384;

Shape BatchShape(int64_t size, const Shape& example) {
  std::vector<int64_t> dims = {size};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  absl::StatusOr<Shape> shape = Shape::Create(dims);
  return shape.ok() ? *std::move(shape) : Shape{};
}

std::vector<Model::Part> PartsOf(const config::v1::ModelConfig& config, const ExampleSpec& examples) {
  std::vector<Model::Part> parts;
  for (const config::v1::Layer& layer : config.layer()) {
    parts.push_back({absl::StrCat("layer ", layer.name()), layer.SerializeAsString()});
  }
  config::v1::ModelConfig rest = config;
  rest.clear_layer();
  rest.clear_parameter();  // of registered models
  parts.push_back({"losses and regularizers", rest.SerializeAsString()});
  parts.push_back({"examples", absl::StrCat(NameOf(examples.features_dtype), examples.features_shape.ToString(), " ",
                                            NameOf(examples.labels_dtype), examples.labels_shape.ToString(), " ",
                                            examples.classes)});
  return parts;
}

}  // namespace

// A writer that adds the regularizers' part to the layers' gradients and passes them to the sink.
class GraphModel::Gradients : public GradientWriter {
 public:
  Gradients(const Pass& pass, const Regularization& regularization, GradientSink* sink)
      : pass_(pass), regularization_(regularization), sink_(sink) {}

  float* Buffer(int variable) override { return sink_->GradientBuffer(variable); }
  void Final(int variable) override {
    regularization_.AddGradient(pass_.compute, variable, pass_.values[variable], sink_->GradientBuffer(variable));
    sink_->OnGradient(variable);
  }

 private:
  const Pass& pass_;
  const Regularization& regularization_;
  GradientSink* const sink_;
};

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const config::v1::ModelConfig& config, const ExampleSpec& examples,
                                                   const ModelOptions& options) {
  if (config.registered().empty()) return GraphModel::Create(config, examples, options);
  if (!config.layer().empty() || !config.loss().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the model is the registered '", config.registered(), "', but has ",
                                                   config.layer_size(), " layers and ", config.loss_size(), " losses"));
  }
  ASSIGN_OR_RETURN(const ModelFactory factory, FindModel(config.registered()));
  return factory(config, examples, options);
}

absl::StatusOr<std::unique_ptr<GraphModel>> GraphModel::Create(const config::v1::ModelConfig& config,
                                                               const ExampleSpec& examples,
                                                               const ModelOptions& options) {
  ASSIGN_OR_RETURN(Graph graph, BuildGraph(FuseActivations(config), examples));
  ASSIGN_OR_RETURN(Regularization regularization, Regularization::Create(config, graph.spec));
  return std::unique_ptr<GraphModel>(
      new GraphModel(config, std::move(graph), std::move(regularization), examples, options));
}

GraphModel::GraphModel(const config::v1::ModelConfig& config, Graph graph, Regularization regularization,
                       const ExampleSpec& examples, const ModelOptions& options)
    : graph_(std::move(graph)),
      regularization_(std::move(regularization)),
      examples_(examples),
      fingerprint_(PartsOf(config, examples)),
      compute_(options.compute_threads),
      memory_(graph_.nodes.size()) {
  size_t most_inputs = 1;
  for (const GraphNode& node : graph_.nodes) most_inputs = std::max(most_inputs, node.inputs.size());
  extra_.resize(most_inputs);
}

absl::Status GraphModel::CheckBatch(VariableValues values, const Batch& batch) const {
  if (static_cast<int>(values.size()) != graph_.spec.variables_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(values.size(), " variables were given, but the model has ", graph_.spec.variables_size()));
  }
  if (batch.size < 1) return absl::InvalidArgumentError(absl::StrCat("the batch has ", batch.size, " examples"));
  const Shape shape = BatchShape(batch.size, examples_.features_shape);
  if (batch.features.dtype() != examples_.features_dtype || batch.features.shape() != shape) {
    return absl::InvalidArgumentError(absl::StrCat("features are ", NameOf(batch.features.dtype()), " ",
                                                   batch.features.shape().ToString(), ", but the model was built for ",
                                                   NameOf(examples_.features_dtype), " ", shape.ToString()));
  }
  return absl::OkStatus();
}

Pass GraphModel::MakePass(VariableValues values, const Batch& batch, const SlotKey& key, bool training) {
  Pass pass;
  pass.compute = &compute_;
  pass.batch = batch.size;
  pass.training = training;
  pass.key = key;
  pass.values = values;
  if (examples_.features_dtype == v1::DT_INT32) pass.ids = batch.features.flat<int32_t>().data();
  return pass;
}

const float* GraphModel::ValueOf(int node, const Batch& batch) {
  const int storage = node == kFeatures ? kFeatures : graph_.nodes[node].storage;
  if (storage != kFeatures) return memory_[storage].value.data();
  return examples_.features_dtype == v1::DT_FLOAT ? batch.features.flat<float>().data() : nullptr;
}

absl::Status GraphModel::ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                          GradientSink* sink) {
  RETURN_IF_ERROR(CheckBatch(values, batch));
  RETURN_IF_ERROR(CheckLabels(batch, examples_));
  const Pass pass = MakePass(values, batch, key, true);
  RETURN_IF_ERROR(Forward(pass, batch, {&GraphNode::in_loss}));
  FreeGradients();
  if (!sink->OnLoss(ComputeLoss(pass, batch, true))) return absl::CancelledError("the gradients are no longer wanted");
  for (const GraphNode& node : graph_.nodes) node.op->ReportUpdates(sink);
  Gradients gradients(pass, regularization_, sink);
  for (int i = static_cast<int>(graph_.nodes.size()) - 1; i >= 0; --i) {
    if (graph_.nodes[i].needs_gradient && !graph_.nodes[i].op->is_view()) BackwardNode(pass, batch, i, &gradients);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> GraphModel::Predict(VariableValues values, const Batch& batch) {
  RETURN_IF_ERROR(CheckBatch(values, batch));
  const Pass pass = MakePass(values, batch, {}, false);
  RETURN_IF_ERROR(Forward(pass, batch, {&GraphNode::in_prediction}));
  return Prediction(batch);
}

Tensor GraphModel::Prediction(const Batch& batch) {
  const int last = static_cast<int>(graph_.nodes.size()) - 1;
  Tensor result(v1::DT_FLOAT, BatchShape(batch.size, graph_.nodes[last].op->output_shape()));
  std::copy_n(ValueOf(last, batch), result.num_elements(), result.flat<float>().begin());
  return result;
}

absl::StatusOr<float> GraphModel::EvaluateLoss(VariableValues values, const Batch& batch) {
  RETURN_IF_ERROR(CheckBatch(values, batch));
  RETURN_IF_ERROR(CheckLabels(batch, examples_));
  const Pass pass = MakePass(values, batch, {}, false);
  RETURN_IF_ERROR(Forward(pass, batch, {&GraphNode::in_loss}));
  return ComputeLoss(pass, batch, false);
}

absl::StatusOr<Model::Evaluation> GraphModel::PredictAndEvaluateLoss(VariableValues values, const Batch& batch) {
  RETURN_IF_ERROR(CheckBatch(values, batch));
  RETURN_IF_ERROR(CheckLabels(batch, examples_));
  const Pass pass = MakePass(values, batch, {}, false);
  RETURN_IF_ERROR(Forward(pass, batch, {&GraphNode::in_loss, &GraphNode::in_prediction}));
  return Evaluation{Prediction(batch), ComputeLoss(pass, batch, false)};
}

absl::Status GraphModel::Forward(const Pass& pass, const Batch& batch,
                                 std::initializer_list<bool GraphNode::*> wanted) {
  absl::InlinedVector<const float*, 4> inputs;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&node](const auto flag) { return node.*flag; });
    if (!is_wanted || node.op->is_view()) continue;
    inputs.clear();
    for (const int input : node.inputs) inputs.push_back(ValueOf(input, batch));
    TraceSpan span(node.name);
    RETURN_IF_ERROR(node.op->Forward(pass, inputs, memory_[i].value.Get(pass.batch * ElementsOf(i))));
  }
  return absl::OkStatus();
}

float GraphModel::ComputeLoss(const Pass& pass, const Batch& batch, bool with_gradients) {
  TraceSpan span("loss");
  double loss = 0;
  for (const GraphLoss& term : graph_.losses) {
    float* gradient = nullptr;
    if (with_gradients && graph_.nodes[term.node].needs_gradient) gradient = ContributionBuffer(pass, term.node, 0);
    loss += term.op->Compute(pass.compute, batch, ValueOf(term.node, batch), gradient);
    if (gradient != nullptr) AddContribution(pass, term.node, gradient);
  }
  return static_cast<float>(loss + regularization_.Loss(pass.compute, pass.values));
}

void GraphModel::BackwardNode(const Pass& pass, const Batch& batch, int index, Gradients* gradients) {
  const GraphNode& node = graph_.nodes[index];
  TraceSpan span(node.name, " gradient");
  const int gradient = memory_[index].gradient;
  float* output_gradient = gradients_[gradient].data();
  absl::InlinedVector<const float*, 4> inputs;
  absl::InlinedVector<float*, 4> input_gradients;
  bool in_place = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int input = node.inputs[i];
    inputs.push_back(ValueOf(input, batch));
    const bool wanted = input != kFeatures && graph_.nodes[input].needs_gradient;
    if (wanted && i == 0 && node.op->gradient_in_place()) {
      // If this is the first contribution to the input's gradient, it overwrites this node's gradient.
      int& input_gradient = memory_[graph_.nodes[input].storage].gradient;
      in_place = input_gradient == kNoGradient;
      if (in_place) input_gradient = gradient;
    }
    if (in_place && i == 0) {
      input_gradients.push_back(output_gradient);
    } else {
      input_gradients.push_back(wanted ? ContributionBuffer(pass, input, i) : nullptr);
    }
  }
  node.op->Backward(pass, inputs, ValueOf(index, batch), output_gradient, absl::MakeSpan(input_gradients), gradients);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (input_gradients[i] != nullptr) AddContribution(pass, node.inputs[i], input_gradients[i]);
  }
  memory_[index].gradient = kNoGradient;
  if (!in_place) free_gradients_.push_back(gradient);
}

void GraphModel::FreeGradients() {
  for (NodeMemory& memory : memory_) memory.gradient = kNoGradient;
  free_gradients_.clear();
  for (size_t i = gradients_.size(); i-- > 0;) free_gradients_.push_back(static_cast<int>(i));
}

int GraphModel::TakeGradient(int64_t size) {
  if (free_gradients_.empty()) {
    free_gradients_.push_back(static_cast<int>(gradients_.size()));
    gradients_.emplace_back();
  }
  const int gradient = free_gradients_.back();
  free_gradients_.pop_back();
  gradients_[gradient].Get(size);
  return gradient;
}

float* GraphModel::ContributionBuffer(const Pass& pass, int node, size_t input) {
  NodeMemory& memory = memory_[graph_.nodes[node].storage];
  const int64_t size = pass.batch * ElementsOf(node);
  if (memory.gradient != kNoGradient) return extra_[input].Get(size);
  memory.gradient = TakeGradient(size);
  return gradients_[memory.gradient].data();
}

void GraphModel::AddContribution(const Pass& pass, int node, const float* contribution) {
  float* sum = GradientOf(node);
  if (contribution == sum) return;
  pass.compute->ParallelRanges(pass.batch * ElementsOf(node), kBlock, [&](int64_t begin, int64_t end) {
    AddElements(end - begin, sum + begin, contribution + begin, sum + begin);
  });
}

}  // namespace lockstep
