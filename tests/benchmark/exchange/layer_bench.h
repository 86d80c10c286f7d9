#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LAYER_BENCH_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LAYER_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/layers/layer_op.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {

// A sink that provides memory for the gradients of layers, and discards what is written to it.
class DiscardingSink : public GradientSink, public GradientWriter {
 public:
  explicit DiscardingSink(const v1::ModelSpec& spec);

  bool OnLoss(float) override { return true; }
  void OnUpdate(int, Elements) override {}
  float* GradientBuffer(int variable) override { return gradients_[variable].flat<float>().data(); }
  void OnGradient(int) override {}
  float* Buffer(int variable) override { return GradientBuffer(variable); }
  void Final(int) override {}

 private:
  std::vector<Tensor> gradients_;
};

// A single layer on one thread, with synthetic variables, inputs and output gradients.
class LayerBench {
 public:
  // `config` is a Layer in text format without its name; `shape` is the shape of one input. If `input_gradient` is
  // false, Backward computes only the gradients of the variables, as in a model's first layer.
  LayerBench(LayerFactory factory, const std::string& config, const Shape& shape, int64_t batch,
             bool input_gradient = true);

  void Forward();
  void Backward();

  // Returns the number of multiply-adds of Forward for the whole batch.
  double multiply_adds() const { return static_cast<double>(op_->multiply_adds()) * pass_.batch; }
  // Returns the size of the input and the output in bytes.
  double bytes() const { return static_cast<double>(input_.bytes().size() + output_.bytes().size()); }

 private:
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

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LAYER_BENCH_H_
