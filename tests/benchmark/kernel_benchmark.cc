// How much of the processor's peak of fused multiply-adds the matrix products of the MLP reach on one thread, and how
// much of a plain copy's bandwidth the kernels that memory bounds, on each target of this machine.
//   bazel run //tests/benchmark:kernel_benchmark
// Turns of the peak (or the copy) and of every kernel alternate; a fraction is the median over the turns, of processor
// time, so that other programs disturb it little.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/kernels/activation.h"
#include "lockstep/common/kernels/gemm.h"
#include "lockstep/common/kernels/target.h"
#include "lockstep/common/kernels/update_rules.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/tests/benchmark/processor.h"

namespace lockstep {
namespace {

using benchmark::ProcessorSeconds;

constexpr int kTurns = 61;
constexpr int64_t kUnits[] = {784, 512, 512, 10};
constexpr int kLayers = 3;

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
    const double peak = benchmark::MeasurePeak();
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

// Kernels that do little with each number: the bytes that they read and write in a second, against those of a copy from
// one array to another. An optimizer writes new arrays, as the chief has it do.
class Streams {
 public:
  Streams() {
    for (int i = 0; i < kArrays; ++i) {
      arrays_.emplace_back(kRows, kColumns);
      for (int64_t e = 0; i >= kFirstState && e < kSize; ++e) array(i)[e] = 1;  // Accumulators are positive.
    }
    const ActivationKernel relu{ActivationType::kRelu, 0};
    Add("bias+relu", 2, [=] { AddBiasAndActivateRows(relu, kRows, kColumns, kColumns, array(1), array(0), array(0)); });
    Add("relu gradient", 3, [=] { ApplyActivationGradient(relu, kSize, array(0), array(1), array(1)); });
    Add("and bias gradient", 3,
        [=] { ActivationGradientAndSums(relu, kRows, kColumns, array(0), array(1), array(1), array(2)); });
    AddRule("sgd", SgdRule{0.1f}, 0);
    AddRule("momentum", MomentumRule{0.1f, 0.9f, false}, 1);
    AddRule("adagrad", AdagradRule{0.1f}, 1);
    AddRule("rmsprop", RmsPropRule{0.1f, 0.9f, 0.5f, 1e-6f, false}, 2);
    AddRule("adam", AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f}, 2);
    AddRule("ftrl", FtrlRule{0.1f, 0.3f, 0.2f}, 2);
  }

  void RunTurn() {
    const double begin = ProcessorSeconds();
    std::memcpy(array(2), array(0), kSize * sizeof(float));
    copies_.push_back(2 * kSize * sizeof(float) / (ProcessorSeconds() - begin));
    for (Stream& stream : streams_) {
      const double start = ProcessorSeconds();
      stream.run();
      stream.fractions.push_back(stream.arrays * kSize * sizeof(float) / (ProcessorSeconds() - start) / copies_.back());
    }
  }

  void Print() const {
    std::printf("copy %4.1f GB/s:", 1e-9 * Median(copies_));
    for (const Stream& stream : streams_) std::printf("  %s %.2f", stream.name.c_str(), Median(stream.fractions));
    std::printf("\n");
  }

 private:
  // 16 MB each, more than a second-level cache.
  static constexpr int64_t kRows = 8192;
  static constexpr int64_t kColumns = 512;
  static constexpr int64_t kSize = kRows * kColumns;
  // The gradient, the value and the new value; then each state and the new one.
  static constexpr int kFirstState = 3;
  static constexpr int kArrays = kFirstState + 4;

  struct Stream {
    std::string name;
    // Each array that is read, and each that is written.
    double arrays;
    std::function<void()> run;
    std::vector<double> fractions;
  };

  float* array(int i) { return arrays_[i].data(); }

  void Add(const char* name, double arrays, std::function<void()> run) {
    streams_.push_back({name, arrays, std::move(run), {}});
  }

  template <typename Rule>
  void AddRule(const char* name, const Rule& rule, int states) {
    UpdateArrays arrays{kSize, array(0), 2, array(1), array(2), {}, {}};
    for (int k = 0; k < states; ++k) {
      arrays.state_in[k] = array(kFirstState + k);
      arrays.state_out[k] = array(kFirstState + 2 + k);
    }
    Add(name, 3 + 2 * states, [=] { Update(rule, arrays); });
  }

  std::vector<RandomMatrix> arrays_;
  std::vector<Stream> streams_;
  std::vector<double> copies_;
};

void RunStreams() {
  for (const KernelTarget target : AvailableTargets()) {
    UseTarget(target);
    Streams streams;
    for (int turn = 0; turn < kTurns; ++turn) streams.RunTurn();
    std::printf("%-7s ", TargetName(target));
    streams.Print();
  }
}

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

int main() {
  lockstep::Run();
  lockstep::RunStreams();
}
