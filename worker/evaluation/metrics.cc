#include "lockstep/worker/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/validation/metric_names.h"
#include "lockstep/worker/evaluation/metric_registry.h"

namespace lockstep {
namespace {

// The checked predictions and labels of a batch, row by row.
class Rows {
 public:
  // `labels_dtype` is the required type; DT_INVALID accepts DT_FLOAT and DT_INT32.
  static absl::StatusOr<Rows> Create(const MetricInput& input, v1::DataType labels_dtype = v1::DT_INVALID) {
    const Batch& batch = input.batch;
    const Tensor& predictions = input.predictions;
    Rows rows(input);
    if (predictions.dtype() != v1::DT_FLOAT || predictions.shape().rank() < 1 ||
        predictions.shape().dim(0) != batch.size) {
      return absl::InvalidArgumentError(absl::StrCat("predictions are ", NameOf(predictions.dtype()), " ",
                                                     predictions.shape().ToString(), ", the batch has ", batch.size,
                                                     " examples"));
    }
    rows.outputs_ = batch.size == 0 ? 0 : predictions.num_elements() / batch.size;
    const int64_t labels = batch.labels.num_elements();
    const int64_t expected = batch.labels.dtype() == v1::DT_FLOAT ? predictions.num_elements() : batch.size;
    const bool known = labels_dtype == v1::DT_INVALID
                           ? batch.labels.dtype() == v1::DT_FLOAT || batch.labels.dtype() == v1::DT_INT32
                           : batch.labels.dtype() == labels_dtype;
    if (!known || labels != expected || (batch.size > 0 && rows.outputs_ == 0)) {
      return absl::InvalidArgumentError(absl::StrCat("labels are ", NameOf(batch.labels.dtype()), " ",
                                                     batch.labels.shape().ToString(), ", predictions ",
                                                     predictions.shape().ToString()));
    }
    if (batch.weights.num_elements() != 0 && batch.weights.num_elements() != batch.size) {
      return absl::InvalidArgumentError(
          absl::StrCat(batch.weights.num_elements(), " weights for a batch of ", batch.size, " examples"));
    }
    if (batch.labels.dtype() == v1::DT_INT32) RETURN_IF_ERROR(rows.CheckClasses());
    return rows;
  }

  int64_t size() const { return input_.batch.size; }
  int64_t outputs() const { return outputs_; }
  // A single output distinguishes two classes.
  int64_t classes() const { return std::max<int64_t>(outputs_, 2); }
  bool has_classes() const { return input_.batch.labels.dtype() == v1::DT_INT32; }
  absl::Span<const float> predictions(int64_t i) const { return Row(input_.predictions, i); }
  absl::Span<const float> targets(int64_t i) const { return Row(input_.batch.labels, i); }
  int32_t label(int64_t i) const { return input_.batch.labels.flat<int32_t>()[i]; }
  double weight(int64_t i) const {
    return input_.batch.weights.num_elements() == 0 ? 1.0 : input_.batch.weights.flat<float>()[i];
  }

  // Returns the class with the greatest output; for a single output, 1 if it is above the threshold.
  int64_t predicted_class(int64_t i, float threshold) const {
    const absl::Span<const float> row = predictions(i);
    if (outputs_ == 1) return row[0] > threshold ? 1 : 0;
    return std::max_element(row.begin(), row.end()) - row.begin();
  }

 private:
  explicit Rows(const MetricInput& input) : input_(input) {}

  absl::Status CheckClasses() const {
    for (const int32_t label : input_.batch.labels.flat<int32_t>()) {
      if (label < 0 || label >= classes()) {
        return absl::InvalidArgumentError(absl::StrCat("label ", label, ", but the model has ", outputs_, " outputs"));
      }
    }
    return absl::OkStatus();
  }

  absl::Span<const float> Row(const Tensor& tensor, int64_t i) const {
    return tensor.flat<float>().subspan(i * outputs_, outputs_);
  }

  MetricInput input_;
  int64_t outputs_ = 0;
};

class WeightedMean {
 public:
  void Add(double value, double weight) {
    sum_ += value * weight;
    weight_ += weight;
  }
  // Returns NaN if the weights sum to 0.
  double Result() const { return sum_ / weight_; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

MetricValue Scalar(absl::string_view name, double value) {
  MetricValue result;
  result.name = std::string(name);
  result.value = value;
  return result;
}

class Accuracy : public Metric {
 public:
  // If `one_hot` is true, float labels are one-hot: their greatest element denotes the class.
  Accuracy(bool one_hot, float threshold) : one_hot_(one_hot), threshold_(threshold) {}

  absl::Status Update(const MetricInput& input) override {
    ASSIGN_OR_RETURN(const Rows rows, Rows::Create(input));
    for (int64_t i = 0; i < rows.size(); ++i) mean_.Add(Correct(rows, i), rows.weight(i));
    return absl::OkStatus();
  }

  MetricValue Result() const override { return Scalar("accuracy", mean_.Result()); }

 private:
  double Correct(const Rows& rows, int64_t i) const {
    if (rows.has_classes()) return rows.predicted_class(i, threshold_) == rows.label(i);
    const absl::Span<const float> targets = rows.targets(i);
    if (one_hot_ && rows.outputs() > 1) {
      return rows.predicted_class(i, threshold_) == std::max_element(targets.begin(), targets.end()) - targets.begin();
    }
    int64_t agreeing = 0;
    for (int64_t o = 0; o < rows.outputs(); ++o)
      agreeing += (rows.predictions(i)[o] > threshold_) == (targets[o] > 0.5f);
    return static_cast<double>(agreeing) / static_cast<double>(rows.outputs());
  }

  const bool one_hot_;
  const float threshold_;
  WeightedMean mean_;
};

class TopK : public Metric {
 public:
  TopK(int64_t k, float threshold) : k_(k), threshold_(threshold) {}

  absl::Status Update(const MetricInput& input) override {
    ASSIGN_OR_RETURN(const Rows rows, Rows::Create(input, v1::DT_INT32));
    for (int64_t i = 0; i < rows.size(); ++i) mean_.Add(IsAmongFirst(rows, i), rows.weight(i));
    return absl::OkStatus();
  }

  MetricValue Result() const override { return Scalar(absl::StrCat("top_", k_), mean_.Result()); }

 private:
  // Equal outputs are ranked by index.
  bool IsAmongFirst(const Rows& rows, int64_t i) const {
    const int64_t label = rows.label(i);
    if (rows.outputs() == 1) return k_ > 1 || rows.predicted_class(i, threshold_) == label;
    const absl::Span<const float> row = rows.predictions(i);
    if (std::isnan(row[label])) return false;
    int64_t before = 0;
    for (int64_t o = 0; o < rows.outputs(); ++o) {
      before += row[o] > row[label] || (row[o] == row[label] && o < label);
    }
    return before < k_;
  }

  const int64_t k_;
  const float threshold_;
  WeightedMean mean_;
};

class MeanLoss : public Metric {
 public:
  bool needs_loss() const override { return true; }

  absl::Status Update(const MetricInput& input) override {
    int64_t count = input.batch.size;
    if (input.batch.weights.num_elements() > 0) {
      const absl::Span<const float> weights = input.batch.weights.flat<float>();
      count = std::count_if(weights.begin(), weights.end(), [](float weight) { return weight != 0; });
    }
    if (count > 0) mean_.Add(input.loss, static_cast<double>(count));
    return absl::OkStatus();
  }

  MetricValue Result() const override { return Scalar("mean_loss", mean_.Result()); }

 private:
  WeightedMean mean_;
};

class RootMeanSquaredError : public Metric {
 public:
  absl::Status Update(const MetricInput& input) override {
    ASSIGN_OR_RETURN(const Rows rows, Rows::Create(input, v1::DT_FLOAT));
    for (int64_t i = 0; i < rows.size(); ++i) {
      for (int64_t o = 0; o < rows.outputs(); ++o) {
        const double difference = static_cast<double>(rows.predictions(i)[o]) - rows.targets(i)[o];
        mean_.Add(difference * difference, rows.weight(i));
      }
    }
    return absl::OkStatus();
  }

  MetricValue Result() const override { return Scalar("rmse", std::sqrt(mean_.Result())); }

 private:
  WeightedMean mean_;
};

class AreaUnderCurve : public Metric {
 public:
  absl::Status Update(const MetricInput& input) override {
    ASSIGN_OR_RETURN(const Rows rows, Rows::Create(input));
    if (rows.size() > 0 && rows.outputs() > (rows.has_classes() ? 2 : 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("auc needs two classes, the model has ", rows.outputs(), " outputs"));
    }
    for (int64_t i = 0; i < rows.size(); ++i) {
      const absl::Span<const float> row = rows.predictions(i);
      const bool positive = rows.has_classes() ? rows.label(i) == 1 : rows.targets(i)[0] > 0.5f;
      const float score = row.size() == 1 ? row[0] : row[1] - row[0];
      examples_.push_back({score, static_cast<float>(rows.weight(i)), positive});
    }
    return absl::OkStatus();
  }

  MetricValue Result() const override { return Scalar("auc", Area()); }

 private:
  struct Example {
    float score;
    float weight;
    bool positive;
  };

  double Area() const {
    const auto is_nan = [](const Example& example) { return std::isnan(example.score); };
    if (std::any_of(examples_.begin(), examples_.end(), is_nan)) return std::numeric_limits<double>::quiet_NaN();
    std::vector<Example> sorted = examples_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Example& a, const Example& b) { return a.score < b.score; });
    double positives = 0, negatives = 0, area = 0;
    for (size_t i = 0; i < sorted.size();) {
      double equal_positives = 0, equal_negatives = 0;
      const float score = sorted[i].score;
      for (; i < sorted.size() && sorted[i].score == score; ++i) {
        (sorted[i].positive ? equal_positives : equal_negatives) += sorted[i].weight;
      }
      area += equal_positives * (negatives + equal_negatives / 2);
      positives += equal_positives;
      negatives += equal_negatives;
    }
    return area / (positives * negatives);
  }

  std::vector<Example> examples_;
};

class ConfusionMatrix : public Metric {
 public:
  ConfusionMatrix(int64_t classes, float threshold) : classes_(classes), threshold_(threshold) {}

  absl::Status Update(const MetricInput& input) override {
    ASSIGN_OR_RETURN(const Rows rows, Rows::Create(input, v1::DT_INT32));
    if (rows.size() == 0) return absl::OkStatus();
    if (counts_.empty()) {
      classes_ = std::max(classes_, rows.classes());
      counts_.resize(classes_ * classes_);
    }
    if (rows.classes() > classes_) {
      return absl::InvalidArgumentError(
          absl::StrCat("a batch with ", rows.outputs(), " outputs after one with ", classes_));
    }
    for (int64_t i = 0; i < rows.size(); ++i) ++counts_[rows.label(i) * classes_ + rows.predicted_class(i, threshold_)];
    return absl::OkStatus();
  }

  MetricValue Result() const override {
    int64_t all = 0, correct = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      all += counts_[i];
      if (static_cast<int64_t>(i) / classes_ == static_cast<int64_t>(i) % classes_) correct += counts_[i];
    }
    MetricValue result = Scalar("confusion_matrix", static_cast<double>(correct) / static_cast<double>(all));
    result.classes = counts_.empty() ? 0 : classes_;
    result.matrix = counts_;
    return result;
  }

 private:
  int64_t classes_;
  const float threshold_;
  std::vector<int64_t> counts_;
};

// A metric that reports its value under its registered name, which is unique among metrics.
class RegisteredMetric : public Metric {
 public:
  RegisteredMetric(absl::string_view name, std::unique_ptr<Metric> metric) : name_(name), metric_(std::move(metric)) {}

  bool needs_loss() const override { return metric_->needs_loss(); }
  absl::Status Update(const MetricInput& input) override { return metric_->Update(input); }
  MetricValue Result() const override { return Scalar(name_, metric_->Result().value); }

 private:
  const std::string name_;
  const std::unique_ptr<Metric> metric_;
};

// A matrix of this many classes takes 2 GiB.
constexpr int64_t kMaxMatrixClasses = 1 << 14;

bool HasSoftmaxLoss(const config::v1::ModelConfig& model) {
  return std::any_of(model.loss().begin(), model.loss().end(),
                     [](const config::v1::Loss& loss) { return loss.has_softmax_cross_entropy(); });
}

// A single output predicts class 1 if it is above 1/2 (for a probability) or above 0 (otherwise).
float ClassThreshold(const config::v1::ModelConfig& model) {
  const bool of_probabilities = std::any_of(model.loss().begin(), model.loss().end(),
                                            [](const config::v1::Loss& loss) { return loss.has_log_loss(); });
  return of_probabilities ? 0.5f : 0.0f;
}

absl::Status Unsuitable(absl::string_view name, absl::string_view need, const ExampleSpec& examples) {
  return absl::InvalidArgumentError(absl::StrCat("metric \"", name, "\" needs ", need, ", the labels are ",
                                                 NameOf(examples.labels_dtype), " ", examples.labels_shape.ToString(),
                                                 " with ", examples.classes, " classes"));
}

absl::StatusOr<std::unique_ptr<Metric>> CreateRegistered(absl::string_view name, const config::v1::ModelConfig& model,
                                                         const ExampleSpec& examples) {
  ASSIGN_OR_RETURN(const MetricFactory factory, FindMetric(name));
  ASSIGN_OR_RETURN(std::unique_ptr<Metric> metric, factory(model, examples));
  if (metric == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the registered metric \"", name, "\" made nothing"));
  }
  return std::make_unique<RegisteredMetric>(name, std::move(metric));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Metric>> CreateMetric(absl::string_view name, const config::v1::ModelConfig& model,
                                                     const ExampleSpec& examples) {
  const bool has_classes = examples.labels_dtype == v1::DT_INT32;
  if (name == "accuracy") return std::make_unique<Accuracy>(HasSoftmaxLoss(model), ClassThreshold(model));
  if (name == "mean_loss") return std::make_unique<MeanLoss>();
  if (name == "rmse") {
    if (has_classes) return Unsuitable(name, "float labels", examples);
    return std::make_unique<RootMeanSquaredError>();
  }
  if (name == "auc") {
    if (has_classes ? examples.classes > 2 : examples.labels_shape.num_elements() != 1) {
      return Unsuitable(name, "two classes", examples);
    }
    return std::make_unique<AreaUnderCurve>();
  }
  if (name == "confusion_matrix") {
    if (!has_classes || examples.classes > kMaxMatrixClasses) {
      return Unsuitable(name, absl::StrCat("at most ", kMaxMatrixClasses, " classes"), examples);
    }
    return std::make_unique<ConfusionMatrix>(examples.classes, ClassThreshold(model));
  }
  int64_t k;
  if (absl::StartsWith(name, "top_") && absl::SimpleAtoi(name.substr(4), &k) && k > 0) {
    if (!has_classes) return Unsuitable(name, "classes", examples);
    return std::make_unique<TopK>(k, ClassThreshold(model));
  }
  if (const auto registered = RegisteredMetricName(name)) return CreateRegistered(*registered, model, examples);
  return absl::InvalidArgumentError(absl::StrCat("unknown metric \"", name, "\", must be one of ", MetricNames()));
}

std::vector<std::string> DefaultMetrics(const config::v1::ModelConfig& model, const ExampleSpec& examples) {
  bool classifies = examples.labels_dtype == v1::DT_INT32;
  for (const config::v1::Loss& loss : model.loss()) {
    classifies |=
        loss.has_softmax_cross_entropy() || loss.has_sigmoid_cross_entropy() || loss.has_hinge() || loss.has_log_loss();
  }
  return {classifies ? "accuracy" : "rmse", "mean_loss"};
}

absl::StatusOr<std::vector<std::unique_ptr<Metric>>> CreateMetrics(absl::Span<const std::string> names,
                                                                   const config::v1::ModelConfig& model,
                                                                   const ExampleSpec& examples) {
  const std::vector<std::string> defaults = DefaultMetrics(model, examples);
  if (names.empty()) names = defaults;
  std::vector<std::unique_ptr<Metric>> metrics;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Metric>> metric = CreateMetric(names[i], model, examples);
    if (!metric.ok()) return InField(absl::StrCat("evaluation.metric[", i, "]"), metric.status());
    metrics.push_back(*std::move(metric));
  }
  return metrics;
}

}  // namespace lockstep
