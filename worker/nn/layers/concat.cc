#include "lockstep/worker/nn/layers/concat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Approximate number of elements copied together.
constexpr int64_t kBlock = 16384;

class ConcatOp : public LayerOp {
 public:
  ConcatOp(Shape output_shape, std::vector<int64_t> columns)
      : LayerOp(std::move(output_shape)), columns_(std::move(columns)) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    ForEachBlock(pass, [&](int64_t begin, int64_t end) {
      int64_t column = 0;
      for (size_t i = 0; i < columns_.size(); ++i) {
        const float* from = inputs[i] + begin * columns_[i];
        for (int64_t row = begin; row < end; ++row, from += columns_[i]) {
          std::copy_n(from, columns_[i], output + row * width() + column);
        }
        column += columns_[i];
      }
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    ForEachBlock(pass, [&](int64_t begin, int64_t end) {
      int64_t column = 0;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (float* to = input_gradients[i]; to != nullptr) {
          to += begin * columns_[i];
          for (int64_t row = begin; row < end; ++row, to += columns_[i]) {
            std::copy_n(output_gradient + row * width() + column, columns_[i], to);
          }
        }
        column += columns_[i];
      }
    });
  }

 private:
  int64_t width() const { return output_shape().dim(output_shape().rank() - 1); }

  template <typename Body>
  void ForEachBlock(const Pass& pass, Body body) {
    const int64_t rows = pass.batch * output_shape().num_elements() / width();
    pass.compute->ParallelRanges(rows, std::max<int64_t>(1, kBlock / width()), body);
  }

  // The last dimension of each input.
  const std::vector<int64_t> columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeConcat(LayerBuilder* builder) {
  const absl::Span<const Shape> shapes = builder->input_shapes();
  if (shapes.size() < 2) return builder->Error("it joins 2 or more inputs, but has ", shapes.size());
  std::vector<int64_t> columns;
  int64_t width = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const absl::Span<const int64_t> dims = shapes[i].dims(), first = shapes[0].dims();
    if (dims.empty() || dims.size() != first.size() || !std::equal(dims.begin(), dims.end() - 1, first.begin())) {
      return builder->Error("its inputs '", builder->config().input(0), "' and '",
                            builder->config().input(static_cast<int>(i)), "' have shapes ", shapes[0].ToString(),
                            " and ", shapes[i].ToString(), ", which may differ in the last dimension alone");
    }
    columns.push_back(dims.back());
    width += dims.back();
  }
  std::vector<int64_t> dims(shapes[0].dims().begin(), shapes[0].dims().end());
  dims.back() = width;
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape(dims));
  return std::make_unique<ConcatOp>(std::move(output), std::move(columns));
}

}  // namespace lockstep
