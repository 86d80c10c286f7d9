#ifndef LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_FORM_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_FORM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/images/decode_image.h"

namespace lockstep {

// A converter of images of any size to one shape: floats in [0, 1], [height, width, channels]. A value type,
// thread-safe.
//
// The conversion uses a rectangle of the image, of height h and width w at (top, left): with STRETCH, the whole image;
// with CROP, the largest centered rectangle with the output's aspect ratio, h = H and w = H * width / height, or w = W
// and h = W * height / width. Output (i, j) is at y = top + (i + 0.5) * h / height - 0.5 in the image, clamped to [0, H
// - 1], and x accordingly, in double precision. With y0 = floor(y), y1 = min(y0 + 1, H - 1), fy = y - y0 as a float,
// and x0, x1, fx defined in the same way, its value is, in float arithmetic in this order,
//   upper = p(y0, x0) + (p(y0, x1) - p(y0, x0)) * fx
//   lower = p(y1, x0) + (p(y1, x1) - p(y1, x0)) * fx
//   (upper + (lower - upper) * fy) / 255.
// This is tf.image.resize without antialiasing. If an image already has the output's size, its bytes are only divided
// by 255.
class ImageForm {
 public:
  // Returns InvalidArgument, which names the field of `config` that is out of range.
  static absl::StatusOr<ImageForm> Create(const config::v1::InputConfig::ImageForm& config);

  const Shape& shape() const { return shape_; }
  // Returns a string that changes whenever images would be converted to different values. It consists of the form and
  // the decoder's version.
  std::string Fingerprint() const;

  // Decodes an image and writes shape().num_elements() values. Returns errors from DecodeImage, and DataLoss for an
  // image of a different size with EXACT.
  absl::Status Fill(absl::string_view encoded, float* out) const;

  // Converts a decoded image, which must have as many channels as shape(), to this form.
  void Resize(const ByteImage& image, float* out) const;

 private:
  ImageForm() = default;

  int64_t height() const { return shape_.dim(0); }
  int64_t width() const { return shape_.dim(1); }
  int64_t channels() const { return shape_.dim(2); }

  Shape shape_;
  config::v1::InputConfig::ImageForm::Fit fit_ = config::v1::InputConfig::ImageForm::STRETCH;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_FORM_H_
