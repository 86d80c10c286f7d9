#include "lockstep/tests/benchmark/kernel_benchmark.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/kernels/update_rules.h"
#include "lockstep/kernels/vectors/target.h"
#include "lockstep/tests/benchmark/exchange/layer_bench.h"
#include "lockstep/tests/benchmark/exchange/mlp_products.h"
#include "lockstep/tests/benchmark/processor.h"
#include "lockstep/tests/benchmark/spread.h"
#include "lockstep/worker/nn/layers/images/conv2d.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int kLeastTurns = 5;
// The bars (required minimum ratios). Products and convolutions are compared with the processor's peak, memory-bound
// kernels with the bandwidth of a copy.
constexpr double kAvx2ProductsBar = 0.85;
constexpr double kAvx512ProductsBar = 0.80;
constexpr double kConvolutionsBar = 0.6;
constexpr double kStreamsBar = 0.8;

// Returns the processor time of `work`.
double SecondsOf(const std::function<void()>& work) {
  const double begin = ProcessorSeconds();
  work();
  return ProcessorSeconds() - begin;
}

Row* AddRow(const std::string& what, const char* unit, const char* against, Report* report) {
  Row* const row = report->add_row();
  row->set_group("kernels");
  row->set_what(absl::StrCat(what, ", ", TargetName(CurrentTarget())));
  row->set_unit(unit);
  row->set_against(against);
  return row;
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

// A benchmark of work that consists of multiply-adds. In every turn, measures the speed of the work and the peak rate.
class MultiplyAdds {
 public:
  void Add(std::string name, double multiply_adds, std::function<void()> run) {
    parts_.push_back({std::move(name), multiply_adds, std::move(run), {}});
    multiply_adds_ += multiply_adds;
  }

  // Measures the peak and runs every part once. Returns the processor time that this took, in seconds.
  double RunTurn() {
    const double begin = ProcessorSeconds();
    peaks_.push_back(Giga(MeasurePeak()));
    double seconds = 0;
    for (Part& part : parts_) {
      const double part_seconds = SecondsOf(part.run);
      part.rates.push_back(Giga(part.multiply_adds / part_seconds));
      seconds += part_seconds;
    }
    rates_.push_back(Giga(multiply_adds_ / seconds));
    return ProcessorSeconds() - begin;
  }

  // Adds a row for all parts together, with the bar if it is positive. If `parts` is true, also adds a row for each
  // part.
  void Report(const std::string& what, double bar, bool parts, benchmark::Report* report) const {
    Row* const row = AddRow(what, kUnit, kAgainst, report);
    Compare(rates_, peaks_, row);
    if (bar > 0) row->set_at_least(bar);
    if (!parts) return;
    for (const Part& part : parts_) {
      Compare(part.rates, peaks_, AddRow(absl::StrCat(what, ": ", part.name), kUnit, kAgainst, report));
    }
  }

 private:
  static constexpr char kUnit[] = "GFLOP/s";
  static constexpr char kAgainst[] = "peak";

  struct Part {
    std::string name;
    double multiply_adds;
    std::function<void()> run;
    std::vector<double> rates;
  };

  // Counts each multiply-add as two operations.
  static double Giga(double multiply_adds) { return 2e-9 * multiply_adds; }

  std::vector<Part> parts_;
  double multiply_adds_ = 0;
  std::vector<double> peaks_, rates_;
};

// The matrix products of one step of the MLP.
class Products {
 public:
  explicit Products(int64_t batch) : step_(batch) {
    for (const MlpProducts::Product& product : step_.products()) {
      work_.Add(product.name, product.multiply_adds(),
                [&product] { Multiply(product.a, product.b, product.c, product.b.columns); });
    }
  }

  MultiplyAdds* work() { return &work_; }
  static const char* name() { return "products of the MLP"; }
  static double bar() {
    if (CurrentTarget() == KernelTarget::kAvx2) return kAvx2ProductsBar;
    return CurrentTarget() == KernelTarget::kAvx512 ? kAvx512ProductsBar : 0;
  }

 private:
  const MlpProducts step_;
  MultiplyAdds work_;
};

// The convolutions of a CNN for 28 x 28 images: 3 x 3 x 1 x 32, and 3 x 3 x 32 x 64 after pooling. Includes all work of
// a layer: padding, packing and the bias.
class Convolutions {
 public:
  explicit Convolutions(int64_t batch) {
    Add(1, "conv2d { filters: 32 kernel: 3 }", Shape{28, 28, 1}, batch);
    Add(2, "conv2d { filters: 64 kernel: 3 }", Shape{14, 14, 32}, batch);
  }

  MultiplyAdds* work() { return &work_; }
  static const char* name() { return "convolutions of the CNN"; }
  static double bar() { return kConvolutionsBar; }

 private:
  void Add(int number, const char* config, const Shape& shape, int64_t batch) {
    // The first layer does not compute the gradient of its input, the images.
    layers_.push_back(std::make_unique<LayerBench>(MakeConv2d, config, shape, batch, number > 1));
    LayerBench* const layer = layers_.back().get();
    work_.Add(absl::StrCat("forward", number), layer->multiply_adds(), [layer] { layer->Forward(); });
    work_.Add(absl::StrCat("backward", number), (number > 1 ? 2 : 1) * layer->multiply_adds(),
              [layer] { layer->Backward(); });
  }

  std::vector<std::unique_ptr<LayerBench>> layers_;
  MultiplyAdds work_;
};

// Kernels that do little arithmetic per number. Compares the number of bytes that they read and write per second with
// that of an array copy. Optimizers write to new arrays, as they do in the chief.
class Streams {
 public:
  Streams() {
    for (int i = 0; i < kArrays; ++i) {
      arrays_.emplace_back(kRows, kColumns);
      for (int64_t e = 0; i >= kFirstState && e < kSize; ++e) array(i)[e] = 1;  // accumulators are positive
    }
    const ActivationKernel relu{ActivationType::kRelu, 0};
    Add("bias and ReLU", 2,
        [=] { AddBiasAndActivateRows(relu, kRows, kColumns, kColumns, array(1), array(0), array(0)); });
    Add("gradient of ReLU", 3, [=] { ApplyActivationGradient(relu, kSize, array(0), array(1), array(1)); });
    Add("gradients of ReLU and bias", 3,
        [=] { ActivationGradientAndSums(relu, kRows, kColumns, array(0), array(1), array(1), array(2)); });
    AddRule("SGD", SgdRule{0.1f}, 0);
    AddRule("momentum", MomentumRule{0.1f, 0.9f, false}, 1);
    AddRule("Adagrad", AdagradRule{0.1f}, 1);
    AddRule("RMSProp", RmsPropRule{0.1f, 0.9f, 0.5f, 1e-6f, false}, 2);
    AddRule("Adam", AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f}, 2);
    AddRule("FTRL", FtrlRule{0.1f, 0.3f, 0.2f}, 2);
  }

  double RunTurn() {
    const double begin = ProcessorSeconds();
    const double copy = SecondsOf([this] { std::memcpy(array(2), array(0), kSize * sizeof(float)); });
    copies_.push_back(Rate(2, copy));
    for (Stream& stream : streams_) stream.rates.push_back(Rate(stream.arrays, SecondsOf(stream.run)));
    return ProcessorSeconds() - begin;
  }

  void Report(benchmark::Report* report) const {
    for (const Stream& stream : streams_) {
      Row* const row = AddRow(stream.name, "GB/s", "a plain copy", report);
      Compare(stream.rates, copies_, row);
      row->set_at_least(kStreamsBar);
    }
  }

 private:
  // Each array has 16 MiB, which is more than a second-level cache holds.
  static constexpr int64_t kRows = 8192;
  static constexpr int64_t kColumns = 512;
  static constexpr int64_t kSize = kRows * kColumns;
  // The arrays are the gradient, the value and the new value, then each state and its new version.
  static constexpr int kFirstState = 3;
  static constexpr int kArrays = kFirstState + 4;

  struct Stream {
    std::string name;
    // The number of arrays read or written.
    double arrays;
    std::function<void()> run;
    std::vector<double> rates;
  };

  // Returns the GB/s of passes over `arrays` arrays.
  static double Rate(double arrays, double seconds) { return 1e-9 * arrays * kSize * sizeof(float) / seconds; }

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

// `work` must have RunTurn.
template <typename Work>
void TakeTurns(double seconds, Work* work) {
  double spent = 0;
  for (int turn = 0; turn < kLeastTurns || spent < seconds; ++turn) spent += work->RunTurn();
}

template <typename Work>
void MeasureWork(const KernelBenchmarkOptions& options, Report* report) {
  for (const int64_t batch : options.batches) {
    Work work(batch);
    TakeTurns(options.seconds, work.work());
    work.work()->Report(absl::StrCat(Work::name(), ", batch ", batch), Work::bar(), options.parts, report);
  }
}

}  // namespace

void MeasureKernels(const KernelBenchmarkOptions& options, Report* report) {
  const KernelTarget usual = CurrentTarget();
  for (const KernelTarget target : AvailableTargets()) {
    UseTarget(target);
    MeasureWork<Products>(options, report);
    MeasureWork<Convolutions>(options, report);
    Streams streams;
    TakeTurns(options.seconds, &streams);
    streams.Report(report);
  }
  UseTarget(usual);
}

}  // namespace benchmark
}  // namespace lockstep
