// How much of the processor's peak of fused multiply-adds the matrix products of the MLP and the convolutions of a CNN
// reach on one thread, and how much of a plain copy's bandwidth the kernels that memory bounds, on each target of this
// machine.
//   bazel run //tests/benchmark:kernel_benchmark
// Turns of the peak (or the copy) and of every kernel alternate; a fraction is the median over the turns, of processor
// time, so that other programs disturb it little.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/kernels/activation.h"
#include "lockstep/common/kernels/gemm.h"
#include "lockstep/common/kernels/target.h"
#include "lockstep/common/kernels/update_rules.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/tests/benchmark/layer_bench.h"
#include "lockstep/tests/benchmark/mlp_products.h"
#include "lockstep/tests/benchmark/processor.h"
#include "lockstep/worker/nn/layers/conv2d.h"

namespace lockstep {
namespace {

using benchmark::ProcessorSeconds;

constexpr int kTurns = 61;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class RandomMatrix {
 public:
  RandomMatrix(int64_t rows, int64_t columns) : buffer_(rows * columns * sizeof(float)) {
    Philox(1, rows).FillNormal({data(), static_cast<size_t>(rows * columns)});
  }
  float* data() { return buffer_.as<float>(); }

 private:
  AlignedBuffer buffer_;
};

// Work that multiplies and adds, and the fractions of the peak that it reaches, turn by turn.
class MultiplyAdds {
 public:
  void Add(std::string name, double multiply_adds, std::function<void()> run) {
    parts_.push_back({std::move(name), multiply_adds, std::move(run), {}});
  }

  void RunTurn() {
    const double peak = benchmark::MeasurePeak();
    peaks_.push_back(peak);
    for (Part& part : parts_) {
      const double start = ProcessorSeconds();
      part.run();
      part.fractions.push_back(part.multiply_adds / (ProcessorSeconds() - start) / peak);
    }
  }

  // The whole is weighted by the operations.
  void Print(const char* what) const {
    double operations = 0;
    double time = 0;
    std::string text;
    for (const Part& part : parts_) {
      const double fraction = Median(part.fractions);
      operations += part.multiply_adds;
      time += part.multiply_adds / fraction;
      char number[16];
      std::snprintf(number, sizeof(number), "%.2f", fraction);
      absl::StrAppend(&text, "  ", part.name, " ", number);
    }
    std::printf("peak %4.0f GFLOP/s, all %s %.3f of it:%s\n", 2e-9 * Median(peaks_), what, operations / time,
                text.c_str());
  }

 private:
  struct Part {
    std::string name;
    double multiply_adds;
    std::function<void()> run;
    std::vector<double> fractions;
  };

  std::vector<Part> parts_;
  std::vector<double> peaks_;
};

// The products of one step.
class Step {
 public:
  explicit Step(int64_t batch) : step_(batch) {
    for (const benchmark::MlpProducts::Product& product : step_.products()) {
      work_.Add(product.name, product.multiply_adds(),
                [&product] { Multiply(product.a, product.b, product.c, product.b.columns); });
    }
  }

  void RunTurn() { work_.RunTurn(); }
  void Print() const { work_.Print("products"); }

 private:
  const benchmark::MlpProducts step_;
  MultiplyAdds work_;
};

// The convolutions of a CNN for images of 28 x 28: 3 x 3 x 1 x 32, and after pooling 3 x 3 x 32 x 64. With all that a
// layer does: padding, packing, the bias.
class Convolutions {
 public:
  explicit Convolutions(int64_t batch) {
    Add(1, "conv2d { filters: 32 kernel: 3 }", Shape{28, 28, 1}, batch);
    Add(2, "conv2d { filters: 64 kernel: 3 }", Shape{14, 14, 32}, batch);
  }

  void RunTurn() { work_.RunTurn(); }
  void Print() const { work_.Print("convolutions"); }

 private:
  void Add(int number, const char* config, const Shape& shape, int64_t batch) {
    // The images' gradient is nobody's.
    layers_.push_back(std::make_unique<LayerBench>(MakeConv2d, config, shape, batch, number > 1));
    LayerBench* const layer = layers_.back().get();
    work_.Add(absl::StrCat("forward", number), layer->multiply_adds(), [layer] { layer->Forward(); });
    work_.Add(absl::StrCat("backward", number), (number > 1 ? 2 : 1) * layer->multiply_adds(),
              [layer] { layer->Backward(); });
  }

  std::vector<std::unique_ptr<LayerBench>> layers_;
  MultiplyAdds work_;
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

template <typename Work>
void RunWork() {
  for (const KernelTarget target : AvailableTargets()) {
    UseTarget(target);
    for (const int64_t batch : {64, 256}) {
      Work work(batch);
      for (int turn = 0; turn < kTurns; ++turn) work.RunTurn();
      std::printf("%-7s batch %3lld: ", TargetName(target), static_cast<long long>(batch));
      work.Print();
    }
  }
}

}  // namespace
}  // namespace lockstep

int main() {
  lockstep::RunWork<lockstep::Step>();
  lockstep::RunWork<lockstep::Convolutions>();
  lockstep::RunStreams();
}
