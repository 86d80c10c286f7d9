// Measures the built-in layers and models on one thread, and plain matrix products of the same sizes.
//   bazel run //tests/benchmark:nn_benchmark -- --benchmark_filter=Model
// `./lockstep bench --peers --only=models` compares the models with PyTorch's.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/tests/benchmark/exchange/layer_bench.h"
#include "lockstep/tests/benchmark/exchange/model_exchange.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/layers/activation_layer.h"
#include "lockstep/worker/nn/layers/dense.h"
#include "lockstep/worker/nn/layers/dropout.h"
#include "lockstep/worker/nn/layers/images/conv2d.h"
#include "lockstep/worker/nn/layers/images/pool.h"
#include "lockstep/worker/nn/layers/normalization/batch_norm.h"
#include "lockstep/worker/nn/layers/normalization/layer_norm.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {
namespace {

void BM_Model(::benchmark::State& state, const std::string& name) {
  const benchmark::BenchmarkModel described = benchmark::BenchmarkModelOf(name);
  const auto model = *CreateModel(described.config, described.examples);
  TestVariables variables(model->spec(), 1, 0.05f);
  const Batch batch = RandomBatch(described.examples, state.range(0), 2);
  DiscardingSink sink(model->spec());
  for (auto _ : state) {
    const absl::Status status = model->ComputeGradients(variables.values(), batch, {1, 2, 3}, &sink);
    CHECK(status.ok()) << status;
  }
  state.SetItemsProcessed(state.iterations() * batch.size);
}
BENCHMARK_CAPTURE(BM_Model, softmax, "softmax")->Arg(64)->Arg(256);
BENCHMARK_CAPTURE(BM_Model, mlp, "mlp")->Arg(64)->Arg(256);
BENCHMARK_CAPTURE(BM_Model, cnn, "cnn")->Arg(64)->Arg(256);

void ReportRates(::benchmark::State& state, double multiply_adds, double bytes) {
  using ::benchmark::Counter;
  state.counters["FLOP/s"] = Counter(2 * multiply_adds, Counter::kIsIterationInvariantRate);
  state.counters["B/s"] = Counter(bytes, Counter::kIsIterationInvariantRate);
}

void BM_LayerForward(::benchmark::State& state, LayerFactory factory, const std::string& config, const Shape& shape) {
  LayerBench layer(factory, config, shape, state.range(0));
  for (auto _ : state) layer.Forward();
  ReportRates(state, layer.multiply_adds(), layer.bytes());
}

// Computing the gradients of the variables and of the input takes twice as many multiply-adds as the forward pass.
void BM_LayerBackward(::benchmark::State& state, LayerFactory factory, const std::string& config, const Shape& shape) {
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

// Measures a plain matrix product, c [m, n] = a [m, k] b [k, n], which is an upper bound for the speed of the layers.
void BM_MatrixProduct(::benchmark::State& state) {
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
