#include "lockstep/worker/nn/compute/padded_images.h"

#include <algorithm>

namespace lockstep {

PaddedImages::PaddedImages(int64_t height, int64_t width, int64_t channels, const Border& border)
    : height_(height),
      width_(width),
      channels_(channels),
      border_(border),
      padded_height_(height + border.top + border.bottom),
      padded_width_(width + border.left + border.right) {}

void PaddedImages::Reserve(int64_t count) {
  if (count <= capacity_) return;
  capacity_ = count;
  std::fill_n(buffer_.Get(count * image_size()), count * image_size(), 0.0f);
}

void PaddedImages::Copy(int64_t index, const float* source) {
  const int64_t row = width_ * channels_;
  float* to = buffer_.data() + index * image_size() + border_.top * row_size() + border_.left * channels_;
  for (int64_t y = 0; y < height_; ++y) std::copy_n(source + y * row, row, to + y * row_size());
}

}  // namespace lockstep
