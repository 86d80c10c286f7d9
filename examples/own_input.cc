// A custom input and metric: points on two spirals that wind around each other, and the Brier score of a model's
// predictions, i.e. the mean of (probability - label)^2.
#include "absl/strings/numbers.h"
#include "lockstep/cli/lockstep_program.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/kernels/portable_math.h"
#include "lockstep/worker/data/registry/dataset_registry.h"
#include "lockstep/worker/evaluation/metric_registry.h"

namespace lockstep {

class Spirals : public Dataset {
 public:
  Spirals(const ExampleSpec& spec, Tensor points)
      : Dataset(spec, points.shape().dim(0), false, ExtendCrc32c(StartOfDigest(spec, false), points.bytes())),
        points_(std::move(points)) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      for (int k : {0, 1}) out->features.flat<float>()[2 * i + k] = points_.flat<float>()[2 * indices[i] + k];
      out->labels.flat<int32_t>()[i] = indices[i] % 2;
    }
    return absl::OkStatus();
  }
  const Tensor points_;  // [examples, 2], alternating between the two classes
};
REGISTER_DATASET("spirals", [](const DatasetRequest& request) -> absl::StatusOr<std::unique_ptr<Dataset>> {
  const auto examples = request.source.parameter().find("examples");
  int64_t size = 0;
  if (examples == request.source.parameter().end() || !absl::SimpleAtoi(examples->second, &size) || size < 1)
    return absl::InvalidArgumentError("spirals need a parameter \"examples\", a number above 0");
  Tensor points(v1::DT_FLOAT, Shape({size, 2}));
  const absl::Span<float> xy = points.flat<float>();
  Philox(request.seed, StableHash(request.split)).FillUniform(xy);
  for (int64_t i = 0; i < 2 * size; i += 2) {
    const float radius = 0.2f + 0.8f * xy[i], angle = 6 * radius + 1.57f * (i % 4) + 0.6f * xy[i + 1];
    // Does not use <cmath>, because the last bits of its functions depend on the C library and the processor.
    xy[i] = static_cast<float>(radius * portable::Cos(angle));
    xy[i + 1] = static_cast<float>(radius * portable::Sin(angle));
  }
  return std::make_unique<Spirals>(ExampleSpec{v1::DT_FLOAT, Shape({2}), v1::DT_INT32, Shape(), 2}, std::move(points));
});

class Brier : public Metric {
  absl::Status Update(const MetricInput& input) override {
    const auto logits = input.predictions.flat<float>();
    const auto labels = input.batch.labels.flat<int32_t>();
    if (logits.size() != labels.size()) return absl::InvalidArgumentError("the Brier score is of one output");
    for (size_t i = 0; i < logits.size(); ++i) {
      const double error = 1 / (1 + portable::Exp(-logits[i])) - labels[i];
      sum_ += error * error;
    }
    examples_ += input.batch.size;
    return absl::OkStatus();
  }
  MetricValue Result() const override { return {"brier", sum_ / examples_}; }
  double sum_ = 0, examples_ = 0;
};
REGISTER_METRIC("brier", [](auto&, const ExampleSpec& examples) -> absl::StatusOr<std::unique_ptr<Metric>> {
  if (examples.classes != 2) return absl::InvalidArgumentError("the Brier score is of two classes");
  return std::make_unique<Brier>();
});

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::LockstepMain(argc, argv); }
