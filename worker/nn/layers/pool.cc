#include "lockstep/worker/nn/layers/pool.h"

#include <algorithm>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/kernels/columns.h"
#include "lockstep/worker/nn/kernels/workspace.h"
#include "lockstep/worker/nn/layers/window.h"

namespace lockstep {
namespace {

// The positions of a window that lie inside the input.
struct Range {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};
Range InputRange(const SlidingWindow& w, int64_t o) {
  return {std::max<int64_t>(0, w.first(o)), std::min(w.input, w.first(o) + w.size)};
}

// What both kinds of pooling share: loops over images, windows and channels.
class PoolOp : public LayerOp {
 public:
  PoolOp(Shape output_shape, const WindowGeometry& geometry) : LayerOp(std::move(output_shape)), geometry_(geometry) {}

 protected:
  const WindowGeometry& geometry() const { return geometry_; }
  int64_t input_size() const { return geometry_.y.input * geometry_.x.input * geometry_.channels; }
  int64_t output_size() const { return geometry_.y.output * geometry_.x.output * geometry_.channels; }

  // No input position lies in two windows.
  bool disjoint() const { return geometry_.y.stride >= geometry_.y.size && geometry_.x.stride >= geometry_.x.size; }
  // Disjoint windows that leave no input position out.
  bool covering() const {
    const auto covers = [](const SlidingWindow& w) { return w.stride == w.size && w.span() >= w.padding + w.input; };
    return covers(geometry_.y) && covers(geometry_.x);
  }

  // Calls body(rows, columns, offset of the output's channels) for the windows of one image.
  template <typename Body>
  void ForEachWindow(Body body) const {
    int64_t at = 0;
    for (int64_t oy = 0; oy < geometry_.y.output; ++oy) {
      const Range rows = InputRange(geometry_.y, oy);
      for (int64_t ox = 0; ox < geometry_.x.output; ++ox, at += geometry_.channels) {
        body(rows, InputRange(geometry_.x, ox), at);
      }
    }
  }

  // Calls body(offset of the channels of the position, its number in the window) for the positions of one window.
  template <typename Body>
  void ForEachPosition(const Range& rows, const Range& columns, Body body) const {
    int32_t number = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const int64_t row = y * geometry_.x.input * geometry_.channels;
      for (int64_t x = columns.begin; x < columns.end; ++x) body(row + x * geometry_.channels, number++);
    }
  }

 private:
  const WindowGeometry geometry_;
};

class MaxPoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    int32_t* winners = pass.training ? winners_.Get(pass.batch * output_size()) : nullptr;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      const int64_t at = image * output_size();
      ForwardImage(inputs[0] + image * input_size(), winners == nullptr ? nullptr : winners + at, output + at);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      const int64_t at = image * output_size();
      BackwardImage(winners_.data() + at, output_gradient + at, input_gradients[0] + image * input_size());
    });
  }

 private:
  void ForwardImage(const float* x, int32_t* winners, float* y) const {
    ForEachWindow([&](const Range& rows, const Range& columns, int64_t at) {
      ForEachStrip(geometry().channels, [&](auto strip) {
        for (int v = 0; v < strip.kVectors; ++v) {
          F32x8 largest = strip.Load(x + FirstOffset(rows, columns), v);
          I32x8 winner = {};
          ForEachPosition(rows, columns, [&](int64_t offset, int32_t number) {
            const F32x8 value = strip.Load(x + offset, v);
            const I32x8 larger = (value > largest) | (value != value);
            largest = larger ? value : largest;
            winner = larger ? I32x8{} + number : winner;
          });
          strip.Store(y + at, v, largest);
          if (winners != nullptr) strip.Store(reinterpret_cast<float*>(winners) + at, v, (F32x8)winner);
        }
      });
    });
  }

  void BackwardImage(const int32_t* winners, const float* dy, float* dx) const {
    const bool add = !disjoint();
    if (!covering()) std::fill_n(dx, input_size(), 0.0f);
    ForEachWindow([&](const Range& rows, const Range& columns, int64_t at) {
      ForEachStrip(geometry().channels, [&](auto strip) {
        for (int v = 0; v < strip.kVectors; ++v) {
          const F32x8 gradient = strip.Load(dy + at, v);
          const I32x8 winner = (I32x8)strip.Load(reinterpret_cast<const float*>(winners) + at, v);
          ForEachPosition(rows, columns, [&](int64_t offset, int32_t number) {
            const F32x8 part = winner == number ? gradient : Set8(0);
            strip.Store(dx + offset, v, add ? strip.Load(dx + offset, v) + part : part);
          });
        }
      });
    });
  }

  int64_t FirstOffset(const Range& rows, const Range& columns) const {
    return (rows.begin * geometry().x.input + columns.begin) * geometry().channels;
  }

  // For each output the number, in its window, of the position it came from.
  Workspace<int32_t> winners_;
};

class AveragePoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      const float* x = inputs[0] + image * input_size();
      float* y = output + image * output_size();
      ForEachWindow([&](const Range& rows, const Range& columns, int64_t at) {
        const F32x8 count = Set8(static_cast<float>(rows.size() * columns.size()));
        ForEachStrip(geometry().channels, [&](auto strip) {
          for (int v = 0; v < strip.kVectors; ++v) {
            F32x8 sum = Set8(0);
            ForEachPosition(rows, columns, [&](int64_t offset, int32_t) { sum += strip.Load(x + offset, v); });
            strip.Store(y + at, v, sum / count);
          }
        });
      });
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      BackwardImage(output_gradient + image * output_size(), input_gradients[0] + image * input_size());
    });
  }

 private:
  void BackwardImage(const float* dy, float* dx) const {
    const bool add = !disjoint();
    if (!covering()) std::fill_n(dx, input_size(), 0.0f);
    ForEachWindow([&](const Range& rows, const Range& columns, int64_t at) {
      const F32x8 count = Set8(static_cast<float>(rows.size() * columns.size()));
      ForEachStrip(geometry().channels, [&](auto strip) {
        for (int v = 0; v < strip.kVectors; ++v) {
          const F32x8 part = strip.Load(dy + at, v) / count;
          ForEachPosition(rows, columns, [&](int64_t offset, int32_t) {
            strip.Store(dx + offset, v, add ? strip.Load(dx + offset, v) + part : part);
          });
        }
      });
    });
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<LayerOp>> MakePool(LayerBuilder* builder, const config::v1::Layer::Pool& config) {
  ASSIGN_OR_RETURN(const WindowGeometry geometry,
                   MakeWindowGeometry(*builder, config.window(), config.strides(), 0, config.padding()));
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({geometry.y.output, geometry.x.output, geometry.channels}));
  return std::make_unique<Op>(std::move(output), geometry);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeMaxPool(LayerBuilder* builder) {
  return MakePool<MaxPoolOp>(builder, builder->config().max_pool());
}

absl::StatusOr<std::unique_ptr<LayerOp>> MakeAveragePool(LayerBuilder* builder) {
  return MakePool<AveragePoolOp>(builder, builder->config().average_pool());
}

}  // namespace lockstep
