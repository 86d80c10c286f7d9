#include "lockstep/worker/nn/layers/images/window.h"

#include <algorithm>
#include <array>

#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Larger windows and strides are rejected, so that no position overflows.
constexpr int64_t kMaxWindow = 1 << 20;

using Pair = std::array<int64_t, 2>;

absl::StatusOr<Pair> HeightAndWidth(const LayerBuilder& builder, absl::string_view what,
                                    const google::protobuf::RepeatedField<int64_t>& numbers) {
  if (numbers.size() != 1 && numbers.size() != 2) {
    return builder.Error(what, " has ", numbers.size(), " numbers, but needs 1 or 2");
  }
  const Pair pair = {numbers[0], numbers[numbers.size() - 1]};
  for (const int64_t number : pair) {
    if (number < 1 || number > kMaxWindow) {
      return builder.Error(what, " is ", number, ", but must be in [1, ", kMaxWindow, "]");
    }
  }
  return pair;
}

absl::StatusOr<SlidingWindow> MakeWindow(const LayerBuilder& builder, absl::string_view dimension, int64_t input,
                                         int64_t size, int64_t stride, config::v1::Padding padding) {
  SlidingWindow window;
  window.input = input;
  window.size = size;
  window.stride = stride;
  if (padding == config::v1::SAME) {
    window.output = (input + stride - 1) / stride;
    window.padding = std::max<int64_t>(0, window.span() - input) / 2;
    return window;
  }
  if (padding == config::v1::HALF) {
    window.output = (input - 1) / stride + 1;
    window.padding = (size - 1) / 2;
    return window;
  }
  if (size > input) {
    return builder.Error("a window of ", dimension, " ", size, " does not fit an input of ", dimension, " ", input,
                         " without padding");
  }
  window.output = (input - size) / stride + 1;
  return window;
}

}  // namespace

absl::StatusOr<WindowGeometry> MakeWindowGeometry(const LayerBuilder& builder,
                                                  const google::protobuf::RepeatedField<int64_t>& size,
                                                  const google::protobuf::RepeatedField<int64_t>& strides,
                                                  int64_t otherwise, config::v1::Padding padding) {
  const Shape& input = builder.input_shape();
  if (input.rank() != 3 && input.rank() != 2) {
    return builder.Error("it reads [height, width, channels], not shape ", input.ToString());
  }
  if (!Padding_IsValid(padding)) return builder.Error("there is no padding ", static_cast<int>(padding));
  ASSIGN_OR_RETURN(const Pair sizes, HeightAndWidth(builder, "the window", size));
  Pair steps = otherwise == 0 ? sizes : Pair{otherwise, otherwise};
  if (!strides.empty()) {
    ASSIGN_OR_RETURN(steps, HeightAndWidth(builder, "strides", strides));
  }
  WindowGeometry geometry;
  ASSIGN_OR_RETURN(geometry.y, MakeWindow(builder, "height", input.dim(0), sizes[0], steps[0], padding));
  ASSIGN_OR_RETURN(geometry.x, MakeWindow(builder, "width", input.dim(1), sizes[1], steps[1], padding));
  geometry.channels = input.rank() == 3 ? input.dim(2) : 1;
  return geometry;
}

}  // namespace lockstep
