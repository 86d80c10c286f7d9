#include "lockstep/tests/benchmark/exchange/model_exchange.h"

#include <memory>
#include <utility>

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/tests/benchmark/exchange/layer_bench.h"
#include "lockstep/tests/benchmark/exchange/mlp_products.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr char kSoftmax[] = "layer { name: 'logits' dense { units: 10 } }";
constexpr char kMlp[] =
    "layer { name: 'hidden1' dense { units: 512 activation: RELU } }"
    "layer { name: 'hidden2' dense { units: 512 activation: RELU } } layer { name: 'logits' dense { units: 10 } }";
constexpr char kCnn[] =
    "layer { name: 'conv1' conv2d { filters: 32 kernel: 3 } } layer { name: 'norm1' batch_norm {} }"
    "layer { name: 'relu1' activation { kind: RELU } } layer { name: 'pool1' max_pool { window: 2 } }"
    "layer { name: 'conv2' conv2d { filters: 64 kernel: 3 } } layer { name: 'norm2' batch_norm {} }"
    "layer { name: 'relu2' activation { kind: RELU } } layer { name: 'pool2' max_pool { window: 2 } }"
    "layer { name: 'flat' flatten {} } layer { name: 'hidden' dense { units: 128 activation: RELU } }"
    "layer { name: 'logits' dense { units: 10 } }";
constexpr char kLoss[] = " loss { softmax_cross_entropy {} }";

class ModelWorker : public ExchangeWorker {
 public:
  ModelWorker(const BenchmarkModel& model, int64_t batch)
      : model_(*CreateModel(model.config, model.examples)),
        variables_(model_->spec(), 1, 0.05f),
        batch_(RandomBatch(model.examples, batch, 2)),
        sink_(model_->spec()) {}

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      const absl::Status status = model_->ComputeGradients(variables_.values(), batch_, {1, 2, 3}, &sink_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<Model> model_;
  const TestVariables variables_;
  const Batch batch_;
  DiscardingSink sink_;
};

class ProductWorker : public ExchangeWorker {
 public:
  explicit ProductWorker(int64_t batch) : products_(batch) {}

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      for (const MlpProducts::Product& product : products_.products()) {
        Multiply(product.a, product.b, product.c, product.b.columns);
      }
    }
    return absl::OkStatus();
  }

 private:
  const MlpProducts products_;
};

}  // namespace

BenchmarkModel BenchmarkModelOf(const std::string& name) {
  CHECK(name == "softmax" || name == "mlp" || name == "cnn") << name;
  BenchmarkModel model;
  const std::string layers = name == "softmax" ? kSoftmax : name == "mlp" ? kMlp : kCnn;
  CHECK(google::protobuf::TextFormat::ParseFromString(layers + kLoss, &model.config));
  model.examples.features_shape = name == "cnn" ? Shape{28, 28, 1} : Shape{784};
  model.examples.classes = 10;
  return model;
}

Exchange ModelExchange(const std::string& name, int64_t batch) {
  return {
      ServeNothing,
      [name, batch](const ExchangeSpec&, const std::string&, int) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
        return std::unique_ptr<ExchangeWorker>(std::make_unique<ModelWorker>(BenchmarkModelOf(name), batch));
      }};
}

Exchange ProductExchange(int64_t batch) {
  return {ServeNothing,
          [batch](const ExchangeSpec&, const std::string&, int) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
            return std::unique_ptr<ExchangeWorker>(std::make_unique<ProductWorker>(batch));
          }};
}

}  // namespace benchmark
}  // namespace lockstep
