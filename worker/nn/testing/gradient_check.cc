#include "lockstep/worker/nn/testing/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

Shape ShapeOf(const v1::VariableSpec& variable) {
  absl::StatusOr<Shape> shape = Shape::Create(variable.shape());
  CHECK(shape.ok()) << shape.status();
  return *std::move(shape);
}

// A sink that records the loss and declines the gradients.
class LossSink : public GradientSink {
 public:
  bool OnLoss(float loss) override {
    loss_ = loss;
    return false;
  }
  void OnUpdate(int, Elements) override {}
  float* GradientBuffer(int) override { return nullptr; }
  void OnGradient(int) override {}
  float loss() const { return loss_; }

 private:
  float loss_ = 0;
};

double Length(absl::Span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

// Estimates the derivative of the loss along a unit vector of one variable by a central difference.
class Difference {
 public:
  Difference(Model* model, TestVariables* variables, const Batch& batch, const GradientCheckOptions& options)
      : model_(*model), variables_(*variables), batch_(batch), options_(options) {}

  double Along(int variable, const std::vector<float>& direction) {
    const absl::Span<float> value = variables_.value(variable);
    const std::vector<float> point(value.begin(), value.end());
    double losses[2];
    for (const int side : {0, 1}) {
      const float distance = side == 0 ? -options_.step : options_.step;
      for (size_t i = 0; i < point.size(); ++i) value[i] = point[i] + distance * direction[i];
      LossSink sink;
      const absl::Status status = model_.ComputeGradients(variables_.values(), batch_, options_.key, &sink);
      CHECK(absl::IsCancelled(status)) << status;
      losses[side] = sink.loss();
    }
    std::copy(point.begin(), point.end(), value.begin());
    return (losses[1] - losses[0]) / (2 * static_cast<double>(options_.step));
  }

 private:
  Model& model_;
  TestVariables& variables_;
  const Batch& batch_;
  const GradientCheckOptions& options_;
};

// Returns the unit vectors to try for a gradient.
std::vector<std::vector<float>> Directions(absl::Span<const float> gradient, const GradientCheckOptions& options,
                                           uint64_t seed) {
  std::vector<std::vector<float>> directions;
  const double length = Length(gradient);
  for (int i = 0; i < options.directions; ++i) {
    std::vector<float> direction(gradient.size());
    Philox(seed, 2 * i).FillNormal(absl::MakeSpan(direction));
    const double random_length = Length(direction);
    for (size_t j = 0; j < direction.size(); ++j) {
      direction[j] = direction[j] / random_length + (length > 0 ? gradient[j] / length : 0);
    }
    const double total = Length(direction);
    if (total == 0) continue;
    for (float& d : direction) d = static_cast<float>(d / total);
    directions.push_back(std::move(direction));
  }
  for (int i = 0; i < options.elements; ++i) {
    std::vector<float> direction(gradient.size());
    direction[Philox(seed, 2 * i + 1).At(0)[0] % gradient.size()] = 1;
    directions.push_back(std::move(direction));
  }
  return directions;
}

}  // namespace

TestVariables::TestVariables(const v1::ModelSpec& spec, uint64_t seed, float stddev) : spec_(spec) {
  for (const v1::VariableSpec& variable : spec.variables()) {
    Tensor tensor(v1::DT_FLOAT, ShapeOf(variable));
    Philox(seed, StableHash(variable.name())).FillNormal(tensor.flat<float>());
    const bool around_one =
        absl::EndsWith(variable.name(), "/gamma") || absl::EndsWith(variable.name(), "/moving_variance");
    for (float& v : tensor.flat<float>()) v = around_one ? 1 + 0.2f * std::tanh(v) : v * stddev;
    pointers_.push_back(tensor.flat<float>().data());
    tensors_.push_back(std::move(tensor));
  }
}

absl::Span<float> TestVariables::value(const std::string& name) {
  for (int i = 0; i < spec_.variables_size(); ++i) {
    if (spec_.variables(i).name() == name) return value(i);
  }
  LOG(FATAL) << "no variable " << name;
}

RecordingSink::RecordingSink(const v1::ModelSpec& spec)
    : spec_(spec), updates_(spec.update_ops_size()), update_calls_(spec.update_ops_size()) {
  for (const v1::VariableSpec& variable : spec.variables()) {
    Tensor gradient(v1::DT_FLOAT, ShapeOf(variable));
    // NaN reveals elements that a layer does not write.
    std::fill(gradient.flat<float>().begin(), gradient.flat<float>().end(), std::nanf(""));
    gradients_.push_back(std::move(gradient));
  }
}

bool RecordingSink::OnLoss(float loss) {
  if (++losses_ > 1 || !order_.empty()) absl::StrAppend(&violations_, "OnLoss late or twice; ");
  loss_ = loss;
  return !refuse_;
}

void RecordingSink::OnUpdate(int index, Elements value) {
  if (losses_ != 1 || !order_.empty()) absl::StrAppend(&violations_, "OnUpdate(", index, ") out of order; ");
  ++update_calls_[index];
  updates_[index].assign(value.as<float>(), value.as<float>() + value.size());
}

float* RecordingSink::GradientBuffer(int variable) {
  if (losses_ != 1) absl::StrAppend(&violations_, "GradientBuffer(", variable, ") before OnLoss; ");
  return gradients_[variable].flat<float>().data();
}

void RecordingSink::OnGradient(int variable) { order_.push_back(variable); }

std::string RecordingSink::Violations() const {
  std::string result = violations_;
  if (losses_ != 1) absl::StrAppend(&result, losses_, " losses; ");
  if (refuse_) return result;
  for (size_t i = 0; i < update_calls_.size(); ++i) {
    if (update_calls_[i] != 1) absl::StrAppend(&result, "update ", i, " reported ", update_calls_[i], " times; ");
  }
  for (int i = 0; i < spec_.variables_size(); ++i) {
    const int64_t calls = std::count(order_.begin(), order_.end(), i);
    if (calls != spec_.variables(i).trainable()) {
      absl::StrAppend(&result, spec_.variables(i).name(), " announced ", calls, " times; ");
    }
  }
  return result;
}

std::string RecordingSink::Bytes() const {
  std::string bytes(reinterpret_cast<const char*>(&loss_), sizeof(loss_));
  for (const std::vector<float>& update : updates_) {
    bytes.append(reinterpret_cast<const char*>(update.data()), update.size() * sizeof(float));
  }
  for (int i = 0; i < spec_.variables_size(); ++i) {
    if (spec_.variables(i).trainable()) absl::StrAppend(&bytes, gradients_[i].bytes());
  }
  return bytes;
}

absl::Status CheckGradients(Model* model, TestVariables* variables, const Batch& batch,
                            const GradientCheckOptions& options) {
  RecordingSink sink(model->spec());
  RETURN_IF_ERROR(model->ComputeGradients(variables->values(), batch, options.key, &sink));
  if (!sink.Violations().empty()) return absl::InternalError(sink.Violations());
  Difference difference(model, variables, batch, options);
  for (int i = 0; i < model->spec().variables_size(); ++i) {
    if (!model->spec().variables(i).trainable()) continue;
    const absl::Span<const float> gradient = sink.gradient(i);
    const double allowed = options.tolerance * Length(gradient) + options.noise;
    for (const std::vector<float>& direction : Directions(gradient, options, 17 + i)) {
      double analytic = 0;
      for (size_t j = 0; j < direction.size(); ++j) analytic += static_cast<double>(gradient[j]) * direction[j];
      const double numerical = difference.Along(i, direction);
      if (!(std::abs(analytic - numerical) <= allowed)) {
        return absl::InternalError(absl::StrCat(model->spec().variables(i).name(),
                                                ": the gradient along a direction is ", analytic,
                                                ", but the loss changes by ", numerical, "; allowed is ", allowed));
      }
    }
  }
  return absl::OkStatus();
}

Batch RandomBatch(const ExampleSpec& examples, int64_t size, uint64_t seed) {
  std::vector<int64_t> dims = {size};
  dims.insert(dims.end(), examples.features_shape.dims().begin(), examples.features_shape.dims().end());
  Batch batch;
  batch.size = size;
  batch.features = Tensor(examples.features_dtype, *Shape::Create(dims));
  if (examples.features_dtype == v1::DT_FLOAT) {
    Philox(seed, 1).FillNormal(batch.features.flat<float>());
  } else {
    for (int64_t i = 0; i < batch.features.num_elements(); ++i) {
      batch.features.flat<int32_t>()[i] = static_cast<int32_t>(Philox(seed, 1).At(i)[0] % 5);
    }
  }
  dims.resize(1);
  dims.insert(dims.end(), examples.labels_shape.dims().begin(), examples.labels_shape.dims().end());
  batch.labels = Tensor(examples.labels_dtype, *Shape::Create(dims));
  if (examples.labels_dtype == v1::DT_FLOAT) {
    Philox(seed, 2).FillUniform(batch.labels.flat<float>());
  } else {
    for (int64_t i = 0; i < size; ++i) {
      batch.labels.flat<int32_t>()[i] = static_cast<int32_t>(Philox(seed, 2).At(i)[0] % examples.classes);
    }
  }
  return batch;
}

}  // namespace lockstep
