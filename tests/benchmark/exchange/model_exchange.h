#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MODEL_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MODEL_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "lockstep/config/v1/model.pb.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {
namespace benchmark {

// A model with softmax cross-entropy over 10 classes. peers/models.py has the same models.
struct BenchmarkModel {
  config::v1::ModelConfig config;
  ExampleSpec examples;
};

// Returns a model by name. "softmax": 784-10; "mlp": 784-512-512-10 with ReLU; "cnn": 28 x 28 images, two 3 x 3
// convolutions with 32 and 64 filters, each with batch norm, ReLU and max pooling, then 128-10. Ends the program if the
// name is unknown.
BenchmarkModel BenchmarkModelOf(const std::string& name);

// Each step is a forward and a backward pass of a model on one thread, which computes the gradients of all variables.
// Runs no optimizer and exchanges nothing.
Exchange ModelExchange(const std::string& name, int64_t batch);

// Each step consists of the matrix products of one step of the perceptron (mlp_products.h).
Exchange ProductExchange(int64_t batch);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MODEL_EXCHANGE_H_
