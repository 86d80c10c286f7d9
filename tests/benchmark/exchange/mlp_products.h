#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MLP_PRODUCTS_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MLP_PRODUCTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {
namespace benchmark {

// The matrix products of one step of the perceptron 784-512-512-10, in order: the products of the forward pass, then
// for each layer the products that compute the gradients of its kernel and, except in the first layer, of its input.
// Owns the matrices. peers/sgemm.py has the same products.
class MlpProducts {
 public:
  struct Product {
    // E.g. "forward1", "weights3" or "inputs2".
    std::string name;
    Matrix a;
    Matrix b;
    // Row-major, a.rows x b.columns.
    float* c = nullptr;

    double multiply_adds() const { return static_cast<double>(a.rows * a.columns * b.columns); }
  };

  explicit MlpProducts(int64_t batch);

  const std::vector<Product>& products() const { return products_; }

 private:
  // Allocates a matrix of normally distributed random numbers, and returns its data.
  float* NewMatrix(int64_t rows, int64_t columns);

  std::vector<AlignedBuffer> matrices_;
  std::vector<Product> products_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_MLP_PRODUCTS_H_
