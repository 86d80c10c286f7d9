// Time of the built-in layers and models on one thread, next to bare matrix products of the same sizes.
//   bazel run //tests/benchmark:nn_benchmark -- --benchmark_filter=Model
// nn_benchmark.py compares the models with PyTorch's.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/kernels/gemm.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/layers/activation_layer.h"
#include "lockstep/worker/nn/layers/batch_norm.h"
#include "lockstep/worker/nn/layers/conv2d.h"
#include "lockstep/worker/nn/layers/dense.h"
#include "lockstep/worker/nn/layers/dropout.h"
#include "lockstep/worker/nn/layers/layer_norm.h"
#include "lockstep/worker/nn/layers/pool.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {
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
constexpr char kSoftmaxLoss[] = " loss { softmax_cross_entropy {} }";

config::v1::ModelConfig Parse(const std::string& text) {
  config::v1::ModelConfig config;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

ExampleSpec Examples(std::initializer_list<int64_t> shape) {
  ExampleSpec examples;
  examples.features_shape = Shape(shape);
  examples.classes = 10;
  return examples;
}

// Gives the layers memory for their gradients, and throws them away.
class DiscardingSink : public GradientSink, public GradientWriter {
 public:
  explicit DiscardingSink(const v1::ModelSpec& spec) {
    for (const v1::VariableSpec& variable : spec.variables()) {
      gradients_.emplace_back(v1::DT_FLOAT, *Shape::Create(variable.shape()));
    }
  }
  bool OnLoss(float) override { return true; }
  void OnUpdate(int, absl::Span<const float>) override {}
  float* GradientBuffer(int variable) override { return gradients_[variable].flat<float>().data(); }
  void OnGradient(int) override {}
  float* Buffer(int variable) override { return GradientBuffer(variable); }
  void Final(int) override {}

 private:
  std::vector<Tensor> gradients_;
};

void BM_Model(benchmark::State& state, const std::string& layers, std::initializer_list<int64_t> shape) {
  const ExampleSpec examples = Examples(shape);
  const auto model = *CreateModel(Parse(layers + kSoftmaxLoss), examples);
  TestVariables variables(model->spec(), 1, 0.05f);
  const Batch batch = RandomBatch(examples, state.range(0), 2);
  DiscardingSink sink(model->spec());
  for (auto _ : state) {
    const absl::Status status = model->ComputeGradients(variables.values(), batch, {1, 2, 3}, &sink);
    CHECK(status.ok()) << status;
  }
  state.SetItemsProcessed(state.iterations() * batch.size);
}
BENCHMARK_CAPTURE(BM_Model, softmax, kSoftmax, {784})->Arg(64)->Arg(256);
BENCHMARK_CAPTURE(BM_Model, mlp, kMlp, {784})->Arg(64)->Arg(256);
BENCHMARK_CAPTURE(BM_Model, cnn, kCnn, {28, 28, 1})->Arg(64)->Arg(256);

// One layer by itself.
class LayerBench {
 public:
  LayerBench(LayerFactory factory, const std::string& config, const Shape& shape, int64_t batch) {
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
    for (Tensor* tensor : {&input_, &input_gradient_}) *tensor = Random(batch * shape.num_elements());
    for (Tensor* tensor : {&output_, &output_gradient_}) *tensor = Random(batch * op_->output_shape().num_elements());
  }

  void Forward() {
    const float* input = input_.flat<float>().data();
    CHECK(op_->Forward(pass_, absl::MakeConstSpan(&input, 1), output_.flat<float>().data()).ok());
  }
  void Backward() {
    const float* input = input_.flat<float>().data();
    float* input_gradient = input_gradient_.flat<float>().data();
    op_->Backward(pass_, absl::MakeConstSpan(&input, 1), output_.flat<float>().data(),
                  output_gradient_.flat<float>().data(), absl::MakeSpan(&input_gradient, 1), gradients_.get());
  }
  double multiply_adds() const { return static_cast<double>(op_->multiply_adds()) * pass_.batch; }
  double bytes() const { return static_cast<double>(input_.bytes().size() + output_.bytes().size()); }

 private:
  static Tensor Random(int64_t size) {
    Tensor tensor(v1::DT_FLOAT, Shape{size});
    Philox(1, 2).FillNormal(tensor.flat<float>());
    return tensor;
  }

  ComputeContext compute_{1};
  std::unique_ptr<LayerOp> op_;
  std::unique_ptr<TestVariables> variables_;
  std::unique_ptr<DiscardingSink> gradients_;
  Pass pass_;
  Tensor input_;
  Tensor input_gradient_;
  Tensor output_;
  Tensor output_gradient_;
};

void ReportRates(benchmark::State& state, double multiply_adds, double bytes) {
  using benchmark::Counter;
  state.counters["FLOP/s"] = Counter(2 * multiply_adds, Counter::kIsIterationInvariantRate);
  state.counters["B/s"] = Counter(bytes, Counter::kIsIterationInvariantRate);
}

void BM_LayerForward(benchmark::State& state, LayerFactory factory, const std::string& config, const Shape& shape) {
  LayerBench layer(factory, config, shape, state.range(0));
  for (auto _ : state) layer.Forward();
  ReportRates(state, layer.multiply_adds(), layer.bytes());
}

// Gradients of variables and input: twice the forward pass's multiply-adds.
void BM_LayerBackward(benchmark::State& state, LayerFactory factory, const std::string& config, const Shape& shape) {
  LayerBench layer(factory, config, shape, state.range(0));
  layer.Forward();
  for (auto _ : state) layer.Backward();
  ReportRates(state, 2 * layer.multiply_adds(), 2 * layer.bytes());
}

#define LAYER_BENCHMARK(name, factory, config, ...)                                                            \
  BENCHMARK_CAPTURE(BM_LayerForward, name, factory, config, Shape(std::initializer_list<int64_t> __VA_ARGS__)) \
      ->Arg(64);                                                                                               \
  BENCHMARK_CAPTURE(BM_LayerBackward, name, factory, config, Shape(std::initializer_list<int64_t> __VA_ARGS__))->Arg(64)

LAYER_BENCHMARK(dense_784_512_relu, MakeDense, "dense { units: 512 activation: RELU }", {784});
LAYER_BENCHMARK(dense_784_10, MakeDense, "dense { units: 10 }", {784});
LAYER_BENCHMARK(conv_3x3_1_32, MakeConv2d, "conv2d { filters: 32 kernel: 3 }", {28, 28, 1});
LAYER_BENCHMARK(conv_3x3_32_64, MakeConv2d, "conv2d { filters: 64 kernel: 3 }", {14, 14, 32});
LAYER_BENCHMARK(batch_norm_relu, MakeBatchNorm, "batch_norm { activation: RELU }", {28, 28, 32});
LAYER_BENCHMARK(layer_norm, MakeLayerNorm, "layer_norm {}", {64, 512});
LAYER_BENCHMARK(max_pool_2x2, MakeMaxPool, "max_pool { window: 2 }", {28, 28, 32});
LAYER_BENCHMARK(average_pool_2x2, MakeAveragePool, "average_pool { window: 2 }", {28, 28, 32});
LAYER_BENCHMARK(dropout, MakeDropout, "dropout { rate: 0.5 }", {4096});
LAYER_BENCHMARK(gelu, MakeActivationLayer, "activation { kind: GELU }", {4096});
LAYER_BENCHMARK(relu, MakeActivationLayer, "activation { kind: RELU }", {4096});

// What the layers above cannot be faster than: c [m, n] = a [m, k] b [k, n] by itself.
void BM_MatrixProduct(benchmark::State& state) {
  const int64_t m = state.range(0);
  const int64_t k = state.range(1);
  const int64_t n = state.range(2);
  Tensor a(v1::DT_FLOAT, Shape{m, k});
  Tensor b(v1::DT_FLOAT, Shape{k, n});
  Tensor c(v1::DT_FLOAT, Shape{m, n});
  Philox(1, 1).FillNormal(a.flat<float>());
  Philox(1, 2).FillNormal(b.flat<float>());
  for (auto _ : state) {
    Multiply(RowMajor(a.flat<float>().data(), m, k), RowMajor(b.flat<float>().data(), k, n), c.flat<float>().data(), n);
  }
  ReportRates(state, static_cast<double>(m) * k * n, 0);
}
BENCHMARK(BM_MatrixProduct)
    ->ArgNames({"m", "k", "n"})
    ->Args({64, 784, 512})
    ->Args({784, 64, 512})
    ->Args({64, 784, 10})
    ->Args({50176, 9, 32})
    ->Args({12544, 288, 64})
    ->Args({288, 12544, 64});

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();
