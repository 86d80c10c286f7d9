// Runs an accumulator according to a script, so that another program can compare it with the original after every line.
// Reads lines from standard input, and answers each with a line of JSON:
//   dense dtype=TYPE reduction=MEAN|SUM shape=SHAPE
//   sparse dtype=TYPE reduction=MEAN|SUM shape=SHAPE
//                          the first line; TYPE is float16, float32 or float64; SHAPE is "?", or dimensions such as
//                          "2,?"
//   apply step=K dims=A,B values=C,D,...
//                          applies a dense gradient; a scalar has no dimension and one value
//   apply step=K index_dims=N indices=A,B,... dims=C,D values=E,F,... dense=G,H
//                          applies a sparse gradient; "dense" may be absent
//   take id=NAME n=N       starts a thread that takes the result, which requires N gradients
//   set step=K             sets the accumulator's step
//   close                  closes the accumulator
// The answer has "code", the line's status code, 0 for OK; "count", the number of gradients present; and "taken": for
// each take that has ended since the previous line, its "code", "dims", "values" and, if sparse, "indices" and "dense".

#include <atomic>
#include <cstdint>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "Eigen/Core"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/train/accumulator/conditional_accumulator.h"
#include "lockstep/train/accumulator/sparse_conditional_accumulator.h"

namespace lockstep::train {
namespace {

std::vector<std::string> Words(const std::string& text) { return absl::StrSplit(text, ',', absl::SkipEmpty()); }

std::vector<int64_t> Ints(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const std::string& word : Words(text)) {
    numbers.push_back(PartialShape::kUnknown);
    CHECK(word == "?" || absl::SimpleAtoi(word, &numbers.back())) << word;
  }
  return numbers;
}

std::string List(absl::Span<const int64_t> numbers) { return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]"); }

PartialShape ShapeOf(const std::string& text) {
  if (text == "?") return PartialShape();
  const std::vector<int64_t> dims = Ints(text);
  switch (dims.size()) {
    case 0:
      return Shape();
    case 1:
      return {dims[0]};
    case 2:
      return {dims[0], dims[1]};
    default:
      CHECK_EQ(dims.size(), 3u);
      return {dims[0], dims[1], dims[2]};
  }
}

v1::DataType TypeOf(const std::string& name) {
  for (const v1::DataType dtype : {v1::DT_HALF, v1::DT_FLOAT, v1::DT_DOUBLE}) {
    if (NameOf(dtype) == name) return dtype;
  }
  LOG(FATAL) << name;
}

double ElementOf(const Tensor& tensor, size_t i) {
  if (tensor.dtype() == v1::DT_HALF) return static_cast<double>(tensor.flat<Eigen::half>()[i]);
  return tensor.dtype() == v1::DT_FLOAT ? static_cast<double>(tensor.flat<float>()[i]) : tensor.flat<double>()[i];
}

Tensor MakeTensor(v1::DataType dtype, const ScriptLine& line) {
  Tensor tensor(dtype, Shape::Create(Ints(line.Text("dims"))).value());
  const std::vector<std::string> words = Words(line.Text("values"));
  CHECK_EQ(static_cast<int64_t>(words.size()), tensor.num_elements());
  for (size_t i = 0; i < words.size(); ++i) {
    double value;
    CHECK(absl::SimpleAtod(words[i], &value)) << words[i];
    if (dtype == v1::DT_HALF) tensor.flat<Eigen::half>()[i] = static_cast<Eigen::half>(value);
    if (dtype == v1::DT_FLOAT) tensor.flat<float>()[i] = static_cast<float>(value);
    if (dtype == v1::DT_DOUBLE) tensor.flat<double>()[i] = value;
  }
  return tensor;
}

void FillGradient(v1::DataType dtype, const ScriptLine& line, Tensor* gradient) { *gradient = MakeTensor(dtype, line); }

void FillGradient(v1::DataType dtype, const ScriptLine& line, IndexedSlices* gradient) {
  gradient->values = MakeTensor(dtype, line);
  gradient->indices =
      Tensor::FromValues<int64_t>(Shape::Create(Ints(line.Text("index_dims"))).value(), Ints(line.Text("indices")));
  gradient->dense_shape = Ints(line.Text("dense"));
}

std::string Json(const Tensor& tensor) {
  std::vector<std::string> values;
  for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
    values.push_back(absl::StrFormat("%.17g", ElementOf(tensor, i)));
  }
  return absl::StrCat("\"dims\": ", List(tensor.shape().dims()), ", \"values\": [", absl::StrJoin(values, ", "), "]");
}

std::string Json(const IndexedSlices& slices) {
  return absl::StrCat(Json(slices.values), ", \"indices\": ", List(slices.indices.flat<int64_t>()),
                      ", \"dense\": ", List(slices.dense_shape));
}

class Script {
 public:
  virtual ~Script() = default;
  // Executes a line, and returns the answer.
  virtual std::string Run(const ScriptLine& line) = 0;
};

template <typename AccumulatorType, typename Gradient>
class ScriptOf : public Script {
 public:
  explicit ScriptOf(const AccumulatorOptions& options)
      : dtype_(options.dtype), accumulator_(AccumulatorType::Create(options).value()) {}
  ~ScriptOf() override {
    accumulator_->Close();
    Reap();
  }

  std::string Run(const ScriptLine& line) override {
    absl::Status status;
    if (line.Word(0) == "apply") {
      Gradient gradient;
      FillGradient(dtype_, line, &gradient);
      status = accumulator_->ApplyGrad(gradient, line.Int("step").value());
    } else if (line.Word(0) == "take") {
      takes_.emplace_back();
      Take* take = &takes_.back();
      take->name = line.Text("id");
      take->thread = std::thread([this, take, required = line.Int("n").value()] {
        const absl::StatusOr<Gradient> taken = accumulator_->TakeGrad(required);
        take->result = absl::StrCat("{\"code\": ", static_cast<int>(taken.status().code()));
        if (taken.ok()) absl::StrAppend(&take->result, ", ", Json(*taken));
        take->result += "}";
        take->ended = true;
      });
    } else if (line.Word(0) == "set") {
      accumulator_->SetGlobalStep(line.Int("step").value());
    } else if (line.Word(0) == "close") {
      accumulator_->Close();
    }
    const std::string taken = Reap();
    return absl::StrCat("{\"code\": ", static_cast<int>(status.code()), ", \"count\": ", accumulator_->NumAccumulated(),
                        ", \"taken\": {", taken, "}}");
  }

 private:
  struct Take {
    std::string name;
    std::string result;
    std::atomic<bool> ended{false};  // and `result` is set
    std::thread thread;
  };

  // Waits until each take either has ended or is waiting in the accumulator. Returns the results of the takes that have
  // ended.
  std::string Reap() {
    const auto running = [this] {
      int64_t count = 0;
      for (const Take& take : takes_) count += take.ended ? 0 : 1;
      return count;
    };
    while (running() != accumulator_->NumWaiting()) std::this_thread::yield();
    std::vector<std::string> results;
    for (auto take = takes_.begin(); take != takes_.end();) {
      if (!take->ended) {
        ++take;
        continue;
      }
      take->thread.join();
      results.push_back(absl::StrCat("\"", take->name, "\": ", take->result));
      take = takes_.erase(take);
    }
    return absl::StrJoin(results, ", ");
  }

  const v1::DataType dtype_;
  const std::unique_ptr<AccumulatorType> accumulator_;
  std::list<Take> takes_;
};

std::unique_ptr<Script> MakeScript(const ScriptLine& line) {
  AccumulatorOptions options;
  options.dtype = TypeOf(line.Text("dtype"));
  options.shape = ShapeOf(line.Text("shape"));
  CHECK(config::v1::TrainingConfig::Reduction_Parse(line.Text("reduction"), &options.reduction));
  if (line.Word(0) == "dense") return std::make_unique<ScriptOf<ConditionalAccumulator, Tensor>>(options);
  CHECK_EQ(line.Word(0), "sparse");
  return std::make_unique<ScriptOf<SparseConditionalAccumulator, IndexedSlices>>(options);
}

}  // namespace
}  // namespace lockstep::train

int main() {
  std::unique_ptr<lockstep::train::Script> script;
  for (std::string text; std::getline(std::cin, text);) {
    const lockstep::train::ScriptLine line(text);
    if (script == nullptr) script = lockstep::train::MakeScript(line);
    std::cout << script->Run(line) << std::endl;
  }
}
