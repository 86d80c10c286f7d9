#include "lockstep/worker/nn/testing/layer_runner.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

absl::StatusOr<std::unique_ptr<LayerOp>> Make(LayerFactory factory, const std::string& config_text,
                                              const std::vector<Shape>& inputs, v1::ModelSpec* spec) {
  config::v1::Layer config;
  CHECK(google::protobuf::TextFormat::ParseFromString(config_text, &config)) << config_text;
  LayerBuilder builder(config, inputs, spec);
  return factory(&builder);
}

}  // namespace

// A writer that records the layer's gradients and how often each was announced.
class LayerRunner::Gradients : public GradientWriter {
 public:
  explicit Gradients(LayerRunner* runner) : runner_(*runner) {}
  float* Buffer(int variable) override { return runner_.gradients_.at(Name(variable)).data(); }
  void Final(int variable) override { ++runner_.announced_[Name(variable)]; }

 private:
  const std::string& Name(int variable) const { return runner_.spec_.variables(variable).name(); }

  LayerRunner& runner_;
};

absl::Status LayerStatus(LayerFactory factory, const std::string& config_text, const std::vector<Shape>& inputs) {
  v1::ModelSpec spec;
  return Make(factory, config_text, inputs, &spec).status();
}

LayerRunner::LayerRunner(LayerFactory factory, const std::string& config_text, const std::vector<Shape>& inputs,
                         const Options& options)
    : compute_(options.threads), ids_(options.ids) {
  absl::StatusOr<std::unique_ptr<LayerOp>> op = Make(factory, config_text, inputs, &spec_);
  CHECK(op.ok()) << op.status();
  op_ = *std::move(op);
  variables_ = std::make_unique<TestVariables>(spec_, 1);
  pass_.compute = &compute_;
  pass_.batch = options.batch;
  pass_.key = options.key;
  if (!ids_.empty()) pass_.ids = ids_.data();
  for (const Shape& shape : inputs) {
    inputs_.emplace_back(options.batch * shape.num_elements());
    Philox(3, inputs_.size()).FillNormal(inputs_.back().values());
  }
}

absl::Status LayerRunner::Forward(bool training) {
  pass_.training = training;
  pass_.values = variables_->values();
  output_ = std::make_unique<ResultArray>(pass_.batch * op_->output_shape().num_elements());
  const std::vector<const float*> inputs = Inputs();
  const absl::Status status = op_->Forward(pass_, inputs, output_->data());
  if (!output_->borders_intact()) absl::StrAppend(&violations_, "Forward writes outside of the output; ");
  return status;
}

void LayerRunner::Backward(absl::Span<const float> weights, InputGradients where) {
  ResultArray output_gradient(weights.size());
  std::copy(weights.begin(), weights.end(), output_gradient.data());
  input_gradients_.clear();
  std::vector<float*> targets;
  for (const ResultArray& input : inputs_) {
    input_gradients_.emplace_back(input.values().size());
    targets.push_back(where == InputGradients::kNone ? nullptr : input_gradients_.back().data());
  }
  if (where == InputGradients::kInPlace) targets[0] = output_gradient.data();
  gradients_.clear();
  for (int i = 0; i < spec_.variables_size(); ++i) {
    if (!spec_.variables(i).trainable()) continue;
    gradients_.emplace(spec_.variables(i).name(), ResultArray(variables_->value(i).size()));
  }
  Gradients writer(this);
  op_->Backward(pass_, Inputs(), output_->data(), output_gradient.data(), absl::MakeSpan(targets), &writer);
  Check(output_gradient, "the output's gradient");
  for (const ResultArray& gradient : input_gradients_) Check(gradient, "an input's gradient");
  for (const auto& [name, gradient] : gradients_) {
    Check(gradient, name);
    if (announced_[name] != 1) absl::StrAppend(&violations_, name, " announced ", announced_[name], " times; ");
  }
  announced_.clear();
  if (where == InputGradients::kInPlace) input_gradients_[0] = std::move(output_gradient);
}

std::vector<const float*> LayerRunner::Inputs() const {
  std::vector<const float*> inputs;
  for (const ResultArray& input : inputs_) inputs.push_back(input.values().data());
  return inputs;
}

void LayerRunner::Check(const ResultArray& array, const std::string& name) {
  if (!array.borders_intact()) absl::StrAppend(&violations_, "Backward writes outside of ", name, "; ");
}

std::string CompareWithReference(LayerRunner* runner, const std::vector<std::string>& variables,
                                 absl::FunctionRef<LayerReference> reference, double tolerance) {
  std::vector<std::vector<double>> arguments = {ToDoubles(runner->input())};
  for (const std::string& name : variables) arguments.push_back(ToDoubles(runner->variable(name)));
  const absl::Status status = runner->Forward();
  if (!status.ok()) return std::string(status.message());
  std::string difference = FirstDifference(runner->output(), reference(arguments), tolerance);
  if (!difference.empty()) return absl::StrCat("output: ", difference);
  const std::vector<float> weights = RandomFloats(static_cast<int64_t>(runner->output().size()), 99);
  runner->Backward(weights);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::vector<double> expected = NumericGradient(arguments[i], weights, [&](const std::vector<double>& x) {
      std::vector<std::vector<double>> moved = arguments;
      moved[i] = x;
      return reference(moved);
    });
    const absl::Span<const float> actual = i == 0 ? runner->input_gradient() : runner->gradient(variables[i - 1]);
    difference = FirstDifference(actual, expected, tolerance);
    if (!difference.empty()) {
      return absl::StrCat("gradient of ", i == 0 ? "the input" : variables[i - 1], ": ", difference);
    }
  }
  return runner->violations();
}

}  // namespace lockstep
