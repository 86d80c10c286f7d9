#include "lockstep/tests/benchmark/exchange/layer_bench.h"

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

Tensor RandomTensor(int64_t size) {
  Tensor tensor(v1::DT_FLOAT, Shape{size});
  Philox(1, 2).FillNormal(tensor.flat<float>());
  return tensor;
}

}  // namespace

DiscardingSink::DiscardingSink(const v1::ModelSpec& spec) {
  for (const v1::VariableSpec& variable : spec.variables()) {
    gradients_.emplace_back(v1::DT_FLOAT, *Shape::Create(variable.shape()));
  }
}

LayerBench::LayerBench(LayerFactory factory, const std::string& config, const Shape& shape, int64_t batch,
                       bool input_gradient) {
  config::v1::Layer layer;
  CHECK(google::protobuf::TextFormat::ParseFromString("name: 'x' " + config, &layer)) << config;
  v1::ModelSpec spec;
  LayerBuilder builder(layer, absl::MakeConstSpan(&shape, 1), &spec);
  op_ = *factory(&builder);
  variables_ = std::make_unique<TestVariables>(spec, 1, 0.05f);
  gradients_ = std::make_unique<DiscardingSink>(spec);
  pass_.compute = &compute_;
  pass_.batch = batch;
  pass_.training = true;
  pass_.values = variables_->values();
  input_ = RandomTensor(batch * shape.num_elements());
  if (input_gradient) input_gradient_ = RandomTensor(batch * shape.num_elements());
  output_ = RandomTensor(batch * op_->output_shape().num_elements());
  output_gradient_ = RandomTensor(batch * op_->output_shape().num_elements());
}

void LayerBench::Forward() {
  const float* input = input_.flat<float>().data();
  CHECK(op_->Forward(pass_, absl::MakeConstSpan(&input, 1), output_.flat<float>().data()).ok());
}

void LayerBench::Backward() {
  const float* input = input_.flat<float>().data();
  float* input_gradient = input_gradient_.bytes().empty() ? nullptr : input_gradient_.flat<float>().data();
  op_->Backward(pass_, absl::MakeConstSpan(&input, 1), output_.flat<float>().data(),
                output_gradient_.flat<float>().data(), absl::MakeSpan(&input_gradient, 1), gradients_.get());
}

}  // namespace lockstep
