// The convolution and pooling functions of kernels.h.
#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/capi/answer.h"
#include "lockstep/capi/arrays.h"
#include "lockstep/capi/kernels.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/images/pool.h"
#include "lockstep/kernels/products/convolution.h"
#include "lockstep/worker/nn/compute/conv_input_gradient.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

constexpr int64_t kMostWindow = 1 << 20;
// Limits the number of phases in which the gradient is computed, stride x stride.
constexpr int64_t kMostStride = 64;

absl::Status RequireNumber(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("images.", name, " is ", value, ", must be in [", least, ", ", most, "]"));
}

// Images and their windows, already validated.
struct Images {
  int64_t count;
  WindowGeometry geometry;
  int64_t padded_height;
  int64_t padded_width;

  int64_t pixels() const { return geometry.y.output * geometry.x.output; }
  int64_t image_size() const { return geometry.y.input * geometry.x.input * geometry.channels; }
  int64_t row_size() const { return padded_width * geometry.channels; }
  // Returns the part of an image that one window covers: its rows, and the floats of each row.
  TileElements patch() const { return {geometry.y.size, geometry.x.size * geometry.channels, 1, row_size()}; }
  int64_t patch_size() const { return geometry.y.size * geometry.x.size * geometry.channels; }

  absl::Status RequireInput(const void* data, const char* name) const {
    return RequireArray(data, name, {count, geometry.y.input, geometry.x.input, geometry.channels});
  }
  absl::Status RequirePadded(const void* data) const {
    return RequireArray(data, "padded", {count, padded_height, padded_width, geometry.channels});
  }
  absl::Status RequireOutput(const void* data, const char* name, int64_t channels) const {
    return RequireArray(data, name, {count, geometry.y.output, geometry.x.output, channels});
  }
  absl::Status RequireKernel(const void* data, int64_t filters) const {
    return RequireArray(data, "kernel", {geometry.y.size, geometry.x.size, geometry.channels, filters});
  }
};

absl::StatusOr<Images> Read(const lockstep_images* images) {
  RETURN_IF_ERROR(RequirePointer(images, "images"));
  RETURN_IF_ERROR(RequireSize(images->size, sizeof(lockstep_images), "images"));
  RETURN_IF_ERROR(RequireNumber("count", images->count, 0, kMostElements));
  RETURN_IF_ERROR(RequireNumber("height", images->height, 1, kMostElements));
  RETURN_IF_ERROR(RequireNumber("width", images->width, 1, kMostElements));
  RETURN_IF_ERROR(RequireNumber("channels", images->channels, 1, kMostElements));
  RETURN_IF_ERROR(RequireNumber("top", images->top, 0, kMostWindow));
  RETURN_IF_ERROR(RequireNumber("bottom", images->bottom, 0, kMostWindow));
  RETURN_IF_ERROR(RequireNumber("left", images->left, 0, kMostWindow));
  RETURN_IF_ERROR(RequireNumber("right", images->right, 0, kMostWindow));
  RETURN_IF_ERROR(RequireNumber("stride_y", images->stride_y, 1, kMostStride));
  RETURN_IF_ERROR(RequireNumber("stride_x", images->stride_x, 1, kMostStride));
  Images read;
  read.count = images->count;
  read.padded_height = images->top + images->height + images->bottom;
  read.padded_width = images->left + images->width + images->right;
  RETURN_IF_ERROR(RequireNumber("window_height", images->window_height, 1, std::min(kMostWindow, read.padded_height)));
  RETURN_IF_ERROR(RequireNumber("window_width", images->window_width, 1, std::min(kMostWindow, read.padded_width)));
  read.geometry.y = {images->height, images->window_height, images->stride_y, images->top,
                     (read.padded_height - images->window_height) / images->stride_y + 1};
  read.geometry.x = {images->width, images->window_width, images->stride_x, images->left,
                     (read.padded_width - images->window_width) / images->stride_x + 1};
  read.geometry.channels = images->channels;
  return read;
}

// Like Read, but for pooling: every window must contain at least one pixel of the image.
absl::StatusOr<Images> ReadForPooling(const lockstep_images* images) {
  ASSIGN_OR_RETURN(const Images read, Read(images));
  RETURN_IF_ERROR(RequireNumber("top", images->top, 0, images->window_height - 1));
  RETURN_IF_ERROR(RequireNumber("bottom", images->bottom, 0, images->window_height - 1));
  RETURN_IF_ERROR(RequireNumber("left", images->left, 0, images->window_width - 1));
  RETURN_IF_ERROR(RequireNumber("right", images->right, 0, images->window_width - 1));
  return read;
}

// Calls body(offset of the image's input, offset of its output) for each image.
template <typename Body>
void ForEachImage(const Images& images, Body body) {
  const int64_t outputs = images.pixels() * images.geometry.channels;
  for (int64_t i = 0; i < images.count; ++i) body(i * images.image_size(), i * outputs);
}

void ComputeKernelGradient(const Images& images, int64_t filters, const float* padded, const float* dy,
                           float* dkernel) {
  KernelGradientInput input;
  input.images = padded;
  input.image_size = images.padded_height * images.row_size();
  input.gradients = dy;
  input.count = images.count;
  input.height = images.geometry.y.output;
  input.width = images.geometry.x.output;
  input.columns = filters;
  input.pixel_stride = images.geometry.x.stride * images.geometry.channels;
  input.row_stride = images.geometry.y.stride * images.row_size();
  input.patch = images.patch();
  KernelGradientBlocks(input, 0, NumKernelGradientBlocks(input), dkernel);
}

}  // namespace

extern "C" {

int lockstep_convolution(const lockstep_images* images, int64_t filters, const float* padded, const float* kernel,
                         const float* bias, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, Read(images));
    RETURN_IF_ERROR(read.RequirePadded(padded));
    RETURN_IF_ERROR(read.RequireKernel(kernel, filters));
    RETURN_IF_ERROR(read.RequireOutput(y, "y", filters));
    thread_local Workspace<float> memory;
    float* const panels = memory.Get(PaddedColumns(filters) * read.patch_size());
    PackPanels(RowMajor(kernel, read.patch_size(), filters), panels);
    const SlidingWindow& rows = read.geometry.y;
    const SlidingWindow& columns = read.geometry.x;
    const PixelGrid from{rows.output, columns.output, rows.stride * read.row_size(),
                         columns.stride * read.geometry.channels};
    const PixelGrid to{rows.output, columns.output, columns.output * filters, filters};
    for (int64_t i = 0; i < read.count; ++i) {
      MultiplyPatches(padded + i * read.padded_height * read.row_size(), from, read.patch(), panels, filters, bias,
                      y + i * read.pixels() * filters, to);
    }
    return absl::OkStatus();
  });
}

int lockstep_convolution_gradient(const lockstep_images* images, int64_t filters, const float* padded,
                                  const float* kernel, const float* dy, float* dx, float* dkernel, float* dbias) {
  return Compute([&](ComputeContext* compute) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, Read(images));
    RETURN_IF_ERROR(read.RequirePadded(padded));
    RETURN_IF_ERROR(read.RequireKernel(kernel, filters));
    RETURN_IF_ERROR(read.RequireOutput(dy, "dy", filters));
    if (dbias != nullptr) SumAllRows(read.count * read.pixels(), filters, dy, dbias);
    if (dkernel != nullptr) ComputeKernelGradient(read, filters, padded, dy, dkernel);
    if (dx != nullptr) ConvInputGradient(read.geometry, filters).Compute(compute, read.count, dy, kernel, dx);
    return absl::OkStatus();
  });
}

int lockstep_max_pool(const lockstep_images* images, const float* x, int32_t* winners, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, ReadForPooling(images));
    RETURN_IF_ERROR(read.RequireInput(x, "x"));
    RETURN_IF_ERROR(read.RequireOutput(y, "y", read.geometry.channels));
    ForEachImage(read, [&](int64_t input, int64_t output) {
      MaxPoolImage(read.geometry, x + input, winners == nullptr ? nullptr : winners + output, y + output);
    });
    return absl::OkStatus();
  });
}

int lockstep_max_pool_gradient(const lockstep_images* images, const int32_t* winners, const float* dy, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, ReadForPooling(images));
    RETURN_IF_ERROR(read.RequireOutput(winners, "winners", read.geometry.channels));
    RETURN_IF_ERROR(read.RequireOutput(dy, "dy", read.geometry.channels));
    RETURN_IF_ERROR(read.RequireInput(dx, "dx"));
    ForEachImage(read, [&](int64_t input, int64_t output) {
      MaxPoolGradient(read.geometry, winners + output, dy + output, dx + input);
    });
    return absl::OkStatus();
  });
}

int lockstep_average_pool(const lockstep_images* images, const float* x, float* y) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, ReadForPooling(images));
    RETURN_IF_ERROR(read.RequireInput(x, "x"));
    RETURN_IF_ERROR(read.RequireOutput(y, "y", read.geometry.channels));
    ForEachImage(read, [&](int64_t input, int64_t output) { AveragePoolImage(read.geometry, x + input, y + output); });
    return absl::OkStatus();
  });
}

int lockstep_average_pool_gradient(const lockstep_images* images, const float* dy, float* dx) {
  return Compute([&](ComputeContext*) -> absl::Status {
    ASSIGN_OR_RETURN(const Images read, ReadForPooling(images));
    RETURN_IF_ERROR(read.RequireOutput(dy, "dy", read.geometry.channels));
    RETURN_IF_ERROR(read.RequireInput(dx, "dx"));
    ForEachImage(read,
                 [&](int64_t input, int64_t output) { AveragePoolGradient(read.geometry, dy + output, dx + input); });
    return absl::OkStatus();
  });
}

}  // extern "C"

}  // namespace lockstep
