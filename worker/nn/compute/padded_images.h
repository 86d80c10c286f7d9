#ifndef LOCKSTEP_WORKER_NN_COMPUTE_PADDED_IMAGES_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_PADDED_IMAGES_H_

#include <cstdint>

#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {

// Images [height, width, channels] with a border of zeros, so that windows that extend over the edge need no special
// case. The border is written once and kept between batches. Not thread-safe, except that different images may be
// copied on different threads.
class PaddedImages {
 public:
  struct Border {
    int64_t top = 0;
    int64_t bottom = 0;
    int64_t left = 0;
    int64_t right = 0;
  };

  PaddedImages(int64_t height, int64_t width, int64_t channels, const Border& border);

  // Returns true if there is a border. Otherwise, the images can be used in place.
  bool needed() const { return padded_height_ != height_ || padded_width_ != width_; }

  // Allocates memory for `count` images. The contents are lost if the memory grows.
  void Reserve(int64_t count);

  // Copies `source` to image `index`.
  void Copy(int64_t index, const float* source);

  const float* image(int64_t index) const { return buffer_.data() + index * image_size(); }

  // Numbers of elements in a row and in an image, including the border.
  int64_t row_size() const { return padded_width_ * channels_; }
  int64_t image_size() const { return padded_height_ * row_size(); }

 private:
  const int64_t height_;
  const int64_t width_;
  const int64_t channels_;
  const Border border_;
  const int64_t padded_height_;
  const int64_t padded_width_;
  Workspace<float> buffer_;
  int64_t capacity_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_PADDED_IMAGES_H_
