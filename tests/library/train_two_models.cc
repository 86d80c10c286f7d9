// A program in another workspace (workspace_test.sh). Trains its own model, which computes with Eigen, and a model of
// built-in layers. Runs a few steps of gradient descent with a decreasing rate, and prints the bits of their weights.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "Eigen/Core"
#include "google/protobuf/text_format.h"
#include "lockstep/kernels/portable_math.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/model_registry.h"

namespace another {

using lockstep::Batch;
using lockstep::ExampleSpec;
using lockstep::Model;
using lockstep::Shape;
using lockstep::Tensor;
namespace v1 = lockstep::v1;

Shape ShapeOf(const v1::VariableSpec& variable) {
  return *Shape::Create(absl::MakeConstSpan(variable.shape().data(), variable.shape_size()));
}

// Least squares: loss = mean of (x w - y)^2 / 2.
class LeastSquares : public Model {
 public:
  LeastSquares(int64_t features, int64_t outputs) : features_(features), outputs_(outputs) {
    v1::VariableSpec* weights = spec_.add_variables();
    weights->set_name("weights");
    weights->set_dtype(v1::DT_FLOAT);
    weights->add_shape(features);
    weights->add_shape(outputs);
    weights->set_trainable(true);
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(lockstep::VariableValues values, const Batch& batch, const lockstep::SlotKey&,
                                lockstep::GradientSink* sink) override {
    const Matrix errors = Predictions(values, batch) - Map(batch.labels, batch.size, outputs_);
    if (!sink->OnLoss(errors.squaredNorm() / (2 * batch.size))) return absl::CancelledError("not wanted any more");
    Eigen::Map<Matrix, Eigen::Aligned32>(sink->GradientBuffer(0), features_, outputs_).noalias() =
        Map(batch.features, batch.size, features_).transpose() * errors / batch.size;
    sink->OnGradient(0);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(lockstep::VariableValues values, const Batch& batch) override {
    const Matrix predictions = Predictions(values, batch);
    return Tensor::FromValues<float>(Shape({batch.size, outputs_}), {predictions.data(), size_t(predictions.size())});
  }
  absl::StatusOr<float> EvaluateLoss(lockstep::VariableValues values, const Batch& batch) override {
    return (Predictions(values, batch) - Map(batch.labels, batch.size, outputs_)).squaredNorm() / (2 * batch.size);
  }

 private:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using ConstMap = Eigen::Map<const Matrix, Eigen::Aligned32>;

  static ConstMap Map(const Tensor& tensor, int64_t rows, int64_t columns) {
    return ConstMap(tensor.flat<float>().data(), rows, columns);
  }
  Matrix Predictions(lockstep::VariableValues values, const Batch& batch) const {
    return Map(batch.features, batch.size, features_) * ConstMap(values[0], features_, outputs_);
  }

  const int64_t features_;
  const int64_t outputs_;
  v1::ModelSpec spec_;
};
REGISTER_MODEL("least_squares",
               [](auto&, const ExampleSpec& examples, auto&) -> absl::StatusOr<std::unique_ptr<Model>> {
                 return std::make_unique<LeastSquares>(examples.features_shape.num_elements(),
                                                       examples.labels_shape.num_elements());
               });

// A sink that keeps the gradients of one pass.
class Gradients : public lockstep::GradientSink {
 public:
  explicit Gradients(const v1::ModelSpec& spec) {
    for (const v1::VariableSpec& variable : spec.variables()) tensors_.emplace_back(v1::DT_FLOAT, ShapeOf(variable));
  }
  bool OnLoss(float loss) override {
    loss_ = loss;
    return true;
  }
  void OnUpdate(int, lockstep::Elements) override {}
  float* GradientBuffer(int variable) override { return tensors_[variable].flat<float>().data(); }
  void OnGradient(int) override {}
  float loss() const { return loss_; }
  const float* of(size_t variable) const { return tensors_[variable].flat<float>().data(); }

 private:
  float loss_ = 0;
  std::vector<Tensor> tensors_;
};

// Numbers in [-1, 1), the same on every machine.
class Numbers {
 public:
  float Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) / 2147483648.0f;
  }
  Tensor Next(const Shape& shape) {
    Tensor tensor(v1::DT_FLOAT, shape);
    for (float& number : tensor.flat<float>()) number = Next();
    return tensor;
  }

 private:
  uint64_t state_ = 1;
};

// FNV-1a over the bytes of all weights.
uint64_t Digest(const std::vector<Tensor>& weights) {
  uint64_t digest = 14695981039346656037u;
  for (const Tensor& tensor : weights)
    for (const char byte : tensor.bytes()) digest = (digest ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  return digest;
}

absl::Status Train(const std::string& name, const char* text) {
  ExampleSpec examples;
  examples.features_shape = Shape({37});
  examples.labels_dtype = v1::DT_FLOAT;
  examples.labels_shape = Shape({11});
  lockstep::config::v1::ModelConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(text, &config)) return absl::InvalidArgumentError(name);
  const auto model = lockstep::CreateModel(config, examples);
  if (!model.ok()) return model.status();

  Numbers numbers;
  std::vector<Tensor> weights;
  for (const v1::VariableSpec& variable : (*model)->spec().variables())
    weights.push_back(numbers.Next(ShapeOf(variable)));
  Gradients gradients((*model)->spec());
  for (int64_t step = 0; step < 20; ++step) {
    const Batch batch = {29, numbers.Next(Shape({29, 37})), numbers.Next(Shape({29, 11})), Tensor()};
    std::vector<const float*> values;
    for (Tensor& tensor : weights) values.push_back(tensor.flat<float>().data());
    const absl::Status status = (*model)->ComputeGradients(values, batch, {1, step, 0}, &gradients);
    if (!status.ok()) return status;
    const auto rate = static_cast<float>(0.1 * lockstep::portable::Exp(-0.05 * static_cast<double>(step)));
    for (size_t variable = 0; variable < weights.size(); ++variable) {
      const absl::Span<float> w = weights[variable].flat<float>();
      const float* g = gradients.of(variable);
      for (size_t i = 0; i < w.size(); ++i) w[i] -= rate * g[i];
    }
  }
  printf("%s: loss %.9g, weights %016llx\n", name.c_str(), gradients.loss(),
         static_cast<unsigned long long>(Digest(weights)));
  return absl::OkStatus();
}

}  // namespace another

int main() {
  absl::Status status = another::Train("least squares", "registered: 'least_squares'");
  if (status.ok()) {
    status = another::Train("perceptron",
                            "layer { name: 'hidden' dense { units: 53 activation: TANH } } "
                            "layer { name: 'logits' dense { units: 11 } } loss { mean_squared_error {} }");
  }
  if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
