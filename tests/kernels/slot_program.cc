// Computes slots of a perceptron with one hidden layer: the loss and the gradients that PyTorch has after
// lockstep.torch.portable(). tests/python/mixed_run_test.py runs it for processors that the machine does not have, so
// it depends only on the kernels and the standard library.
//
//   slot_program ROWS INPUTS UNITS CLASSES
//
// Reads slots from stdin until it ends. A slot is the four parameters of the two layers (weights [outputs, inputs],
// then biases), the examples [ROWS, INPUTS], all float32, and the labels [ROWS], int64. For each slot, writes the loss
// and the gradients of the parameters.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/nn/losses.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {
namespace {

constexpr ActivationKernel kRelu = {ActivationType::kRelu};

template <typename T>
bool Read(std::vector<T>* array) {
  return std::fread(array->data(), sizeof(T), array->size(), stdin) == array->size();
}

void Write(const std::vector<float>& array) { std::fwrite(array.data(), sizeof(float), array.size(), stdout); }

class Linear {
 public:
  Linear(int64_t inputs, int64_t outputs)
      : inputs_(inputs),
        outputs_(outputs),
        weight_(outputs * inputs),
        bias_(outputs),
        dweight_(weight_),
        dbias_(bias_) {}

  bool ReadParameters() { return Read(&weight_) && Read(&bias_); }
  void WriteGradients() const {
    Write(dweight_);
    Write(dbias_);
  }

  std::vector<float> Forward(int64_t rows, const std::vector<float>& x) const {
    std::vector<float> y(rows * outputs_);
    Multiply(RowMajor(x.data(), rows, inputs_), Transposed(weight_.data(), inputs_, outputs_), y.data(), outputs_);
    AddBiasAndActivateRows({}, rows, outputs_, outputs_, bias_.data(), y.data(), y.data());
    return y;
  }

  // Computes the gradients of the parameters. Returns that of x.
  std::vector<float> Backward(int64_t rows, const std::vector<float>& x, const std::vector<float>& dy) {
    SumColumns(rows, outputs_, dy.data(), dbias_.data());
    Multiply(Transposed(dy.data(), outputs_, rows), RowMajor(x.data(), rows, inputs_), dweight_.data(), inputs_);
    std::vector<float> dx(rows * inputs_);
    Multiply(RowMajor(dy.data(), rows, outputs_), RowMajor(weight_.data(), outputs_, inputs_), dx.data(), inputs_);
    return dx;
  }

 private:
  const int64_t inputs_, outputs_;
  std::vector<float> weight_, bias_, dweight_, dbias_;
};

// Returns the mean cross-entropy of the rows of `scores`, and its gradient.
float MeanLoss(int64_t rows, int64_t classes, const std::vector<float>& scores, const std::vector<int64_t>& labels,
               std::vector<float>* gradient) {
  const double scale = 1.0 / static_cast<double>(rows);
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row * classes;
    sum += SoftmaxLossOfLabel({classes, &scores[at], static_cast<float>(scale), &(*gradient)[at]}, /*smoothing=*/0,
                              static_cast<int32_t>(labels[row]));
  }
  return static_cast<float>(sum * scale);
}

void ComputeSlots(int64_t rows, int64_t inputs, int64_t units, int64_t classes) {
  Linear first(inputs, units), second(units, classes);
  std::vector<float> x(rows * inputs), dscores(rows * classes), loss(1);
  std::vector<int64_t> labels(rows);
  while (first.ReadParameters() && second.ReadParameters() && Read(&x) && Read(&labels)) {
    std::vector<float> hidden = first.Forward(rows, x);
    ApplyActivation(kRelu, rows * units, hidden.data(), hidden.data());
    loss[0] = MeanLoss(rows, classes, second.Forward(rows, hidden), labels, &dscores);
    std::vector<float> dhidden = second.Backward(rows, hidden, dscores);
    ApplyActivationGradient(kRelu, rows * units, hidden.data(), dhidden.data(), dhidden.data());
    first.Backward(rows, x, dhidden);
    Write(loss);
    first.WriteGradients();
    second.WriteGradients();
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  lockstep::ComputeSlots(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]));
  return 0;
}
