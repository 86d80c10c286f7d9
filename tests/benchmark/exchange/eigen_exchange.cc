#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "Eigen/Core"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kBatches = 16;
constexpr float kLearningRate = 0.01f;

struct DenseLayer {
  Matrix kernel;
  Eigen::RowVectorXf bias;
  Matrix output;
  Matrix output_gradient;
  Matrix kernel_gradient;
  Eigen::RowVectorXf bias_gradient;
};

class EigenLoop : public ExchangeWorker {
 public:
  explicit EigenLoop(const TrainingSpec& spec) {
    int64_t inputs = kPixels;
    std::vector<int64_t> units = spec.hidden;
    units.push_back(kClasses);
    for (const int64_t outputs : units) {
      DenseLayer layer;
      layer.kernel = Matrix::Random(inputs, outputs) * 0.05f;
      layer.bias = Eigen::RowVectorXf::Zero(outputs);
      layer.output.resize(spec.batch, outputs);
      layer.output_gradient.resize(spec.batch, outputs);
      layer.kernel_gradient.resize(inputs, outputs);
      layers_.push_back(std::move(layer));
      inputs = outputs;
    }
    for (int i = 0; i < kBatches; ++i) {
      inputs_.push_back((Matrix::Random(spec.batch, kPixels).array() + 1.0f) * 0.5f);
      labels_.emplace_back();
      for (int64_t j = 0; j < spec.batch; ++j) labels_.back().push_back((i + j) % kClasses);
    }
  }

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      const int batch = step_++ % kBatches;
      Forward(inputs_[batch]);
      loss_ = CrossEntropy(labels_[batch]);
      Backward(inputs_[batch]);
      for (DenseLayer& layer : layers_) {
        layer.kernel -= kLearningRate * layer.kernel_gradient;
        layer.bias -= kLearningRate * layer.bias_gradient;
      }
    }
    return std::isfinite(loss_) ? absl::OkStatus() : absl::InternalError("the loss is not finite");
  }

 private:
  void Forward(const Matrix& input) {
    const Matrix* x = &input;
    for (DenseLayer& layer : layers_) {
      layer.output.noalias() = *x * layer.kernel;
      layer.output.rowwise() += layer.bias;
      if (&layer != &layers_.back()) layer.output = layer.output.cwiseMax(0.0f);
      x = &layer.output;
    }
  }

  // Returns the mean loss over the batch, and computes the gradient of the logits.
  float CrossEntropy(const std::vector<int64_t>& labels) {
    const Matrix& logits = layers_.back().output;
    Matrix& gradient = layers_.back().output_gradient;
    const float scale = 1.0f / static_cast<float>(logits.rows());
    float loss = 0;
    for (int64_t i = 0; i < logits.rows(); ++i) {
      const float largest = logits.row(i).maxCoeff();
      gradient.row(i) = (logits.row(i).array() - largest).exp();
      const float sum = gradient.row(i).sum();
      loss += std::log(sum) + largest - logits(i, labels[i]);
      gradient.row(i) *= scale / sum;
      gradient(i, labels[i]) -= scale;
    }
    return loss * scale;
  }

  void Backward(const Matrix& input) {
    for (size_t i = layers_.size(); i-- > 0;) {
      DenseLayer& layer = layers_[i];
      const Matrix& x = i == 0 ? input : layers_[i - 1].output;
      layer.kernel_gradient.noalias() = x.transpose() * layer.output_gradient;
      layer.bias_gradient = layer.output_gradient.colwise().sum();
      if (i == 0) continue;
      Matrix& below = layers_[i - 1].output_gradient;
      below.noalias() = layer.output_gradient * layer.kernel.transpose();
      below = (layers_[i - 1].output.array() > 0.0f).select(below, 0.0f);
    }
  }

  std::vector<DenseLayer> layers_;
  std::vector<Matrix> inputs_;
  std::vector<std::vector<int64_t>> labels_;
  int64_t step_ = 0;
  float loss_ = 0;
};

}  // namespace

Exchange EigenExchange(const TrainingSpec& training) {
  return {ServeNothing,
          [training](const ExchangeSpec&, const std::string&, int) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
            return std::unique_ptr<ExchangeWorker>(std::make_unique<EigenLoop>(training));
          }};
}

}  // namespace benchmark
}  // namespace lockstep
