// How much of the processor's peak of fused multiply-adds the matrix products of the MLP reach on one thread, on each
// target of this machine.
//   bazel run //tests/benchmark:kernel_benchmark
// Turns of the peak and of every product alternate; a fraction is the median over the turns, of processor time, so that
// other programs disturb it little.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/kernels/fma_peak.h"
#include "lockstep/common/kernels/gemm.h"
#include "lockstep/common/kernels/target.h"
#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {
namespace {

constexpr int kTurns = 61;
constexpr int64_t kPeakRounds = 100000;
constexpr int64_t kUnits[] = {784, 512, 512, 10};
constexpr int kLayers = 3;

// Of this thread.
double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class RandomMatrix {
 public:
  RandomMatrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), buffer_(rows * columns * sizeof(float)) {
    Philox(1, rows).FillNormal({data(), static_cast<size_t>(rows * columns)});
  }
  float* data() { return buffer_.as<float>(); }
  Matrix matrix() { return RowMajor(data(), rows_, columns_); }
  Matrix transposed() { return Transposed(data(), columns_, rows_); }

 private:
  int64_t rows_;
  int64_t columns_;
  AlignedBuffer buffer_;
};

// One product, and the fractions of the peak that its turns reached.
struct Product {
  std::string name;
  double multiply_adds;
  Matrix a;
  Matrix b;
  float* c;
  std::vector<double> fractions;
};

// The products of one step, in its order.
class Step {
 public:
  explicit Step(int64_t batch) {
    for (int layer = 0; layer < kLayers; ++layer) {
      inputs_.emplace_back(batch, kUnits[layer]);
      input_gradients_.emplace_back(batch, kUnits[layer]);
      kernels_.emplace_back(kUnits[layer], kUnits[layer + 1]);
      kernel_gradients_.emplace_back(kUnits[layer], kUnits[layer + 1]);
      outputs_.emplace_back(batch, kUnits[layer + 1]);
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      Add("forward", layer, inputs_[layer].matrix(), kernels_[layer].matrix(), &outputs_[layer]);
    }
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      Add("weights", layer, inputs_[layer].transposed(), outputs_[layer].matrix(), &kernel_gradients_[layer]);
      if (layer == 0) continue;
      Add("inputs", layer, outputs_[layer].matrix(), kernels_[layer].transposed(), &input_gradients_[layer]);
    }
  }

  void RunTurn() {
    const double begin = ProcessorSeconds();
    const double peak = static_cast<double>(RunMultiplyAdds(kPeakRounds)) / (ProcessorSeconds() - begin);
    peaks_.push_back(peak);
    for (Product& product : products_) {
      const double start = ProcessorSeconds();
      Multiply(product.a, product.b, product.c, product.b.columns);
      product.fractions.push_back(product.multiply_adds / (ProcessorSeconds() - start) / peak);
    }
  }

  void Print() const {
    double operations = 0;
    double time = 0;
    std::string text;
    for (const Product& product : products_) {
      const double fraction = Median(product.fractions);
      operations += product.multiply_adds;
      time += product.multiply_adds / fraction;
      char number[16];
      std::snprintf(number, sizeof(number), "%.2f", fraction);
      absl::StrAppend(&text, "  ", product.name, " ", number);
    }
    std::printf("peak %4.0f GFLOP/s, all products %.3f of it:%s\n", 2e-9 * Median(peaks_), operations / time,
                text.c_str());
  }

 private:
  void Add(const char* what, int layer, const Matrix& a, const Matrix& b, RandomMatrix* c) {
    const double multiply_adds = static_cast<double>(a.rows * a.columns * b.columns);
    products_.push_back({absl::StrCat(what, layer + 1), multiply_adds, a, b, c->data(), {}});
  }

  std::vector<RandomMatrix> inputs_, input_gradients_, kernels_, kernel_gradients_, outputs_;
  std::vector<Product> products_;
  std::vector<double> peaks_;
};

void Run() {
  for (const KernelTarget target : AvailableTargets()) {
    UseTarget(target);
    for (const int64_t batch : {64, 256}) {
      Step step(batch);
      for (int turn = 0; turn < kTurns; ++turn) step.RunTurn();
      std::printf("%-7s batch %3lld: ", TargetName(target), static_cast<long long>(batch));
      step.Print();
    }
  }
}

}  // namespace
}  // namespace lockstep

int main() { lockstep::Run(); }
