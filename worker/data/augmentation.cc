#include "lockstep/worker/data/augmentation.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxPadding = 1 << 20;

struct Image {
  int64_t rows;
  int64_t columns;
  int64_t channels;
};

void MirrorRow(int64_t columns, int64_t channels, float* row) {
  if (channels == 1) {
    std::reverse(row, row + columns);
    return;
  }
  for (int64_t left = 0, right = columns - 1; left < right; ++left, --right) {
    std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

// Sets out(r, c) = in(r + down, c + right), or `outside` if `in` has no such pixel. Then mirrors each row if `flip` is
// true.
void Transform(const Image& image, const float* in, int64_t down, int64_t right, bool flip, float outside, float* out) {
  const int64_t channels = image.channels;
  const int64_t row_elements = image.columns * channels;
  // The columns of `out`, before mirroring, that come from `in`.
  const int64_t first = std::min(std::max<int64_t>(-right, 0), image.columns);
  const int64_t last = std::max(std::min(image.columns - right, image.columns), first);
  for (int64_t r = 0; r < image.rows; ++r, out += row_elements) {
    const int64_t from_row = r + down;
    if (from_row < 0 || from_row >= image.rows) {
      std::fill_n(out, row_elements, outside);
      continue;
    }
    const float* from = in + from_row * row_elements + (first + right) * channels;
    std::fill_n(out, first * channels, outside);
    std::copy_n(from, (last - first) * channels, out + first * channels);
    std::fill(out + last * channels, out + row_elements, outside);
    if (flip) MirrorRow(image.columns, channels, out);
  }
}

// Maps random bits to a shift in [-padding, padding].
int64_t Shift(uint32_t bits, int64_t padding) {
  return static_cast<int64_t>((static_cast<uint64_t>(bits) * static_cast<uint64_t>(2 * padding + 1)) >> 32) - padding;
}

}  // namespace

absl::StatusOr<Augmentation> Augmentation::Create(const config::v1::InputConfig::Augmentation& config,
                                                  const ExampleSpec& spec, const Normalization& normalization,
                                                  uint64_t seed) {
  Augmentation augmentation;
  augmentation.flip_ = config.flip();
  augmentation.padding_ = config.crop_padding();
  augmentation.padding_value_ = normalization(0.0f);
  augmentation.seed_ = seed;
  if (config.crop_padding() < 0 || config.crop_padding() > kMaxPadding) {
    return absl::InvalidArgumentError(absl::StrCat("input.augmentation.crop_padding is ", config.crop_padding(),
                                                   ", must be in [0, ", kMaxPadding, "]"));
  }
  const bool images = spec.features_dtype == v1::DT_FLOAT && spec.features_shape.rank() == 3;
  if (!images && (config.flip() || config.crop_padding() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.augmentation needs float images [rows, columns, channels], the examples are ",
                     NameOf(spec.features_dtype), " ", spec.features_shape.ToString()));
  }
  return augmentation;
}

void Augmentation::Apply(int64_t step, int64_t slot, Batch* batch) const {
  if (!flip_ && padding_ == 0) return;
  const Shape& shape = batch->features.shape();
  const Image image = {shape.dim(1), shape.dim(2), shape.dim(3)};
  const int64_t elements = image.rows * image.columns * image.channels;
  const Philox philox = Philox::ForSlot(seed_, "augmentation", step, slot);
  Tensor result(v1::DT_FLOAT, shape);
  const float* in = batch->features.flat<float>().data();
  float* out = result.flat<float>().data();
  for (int64_t i = 0; i < batch->size; ++i, in += elements, out += elements) {
    const Philox::Block block = philox.At(i);
    const bool flip = flip_ && (block[0] & 1) != 0;
    Transform(image, in, Shift(block[1], padding_), Shift(block[2], padding_), flip, padding_value_, out);
  }
  batch->features = std::move(result);
}

}  // namespace lockstep
