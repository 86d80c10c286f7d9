#include "lockstep/cli/look/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "lockstep/train/events/png.h"

namespace lockstep {
namespace {

// Approximate length of a tile's longer side, in pixels.
constexpr int64_t kTileSide = 96;
constexpr int64_t kGap = 6;
// Digits of 3 x 5 pixels, drawn twice as large.
constexpr int64_t kDigitWidth = 3, kDigitHeight = 5, kDigitScale = 2;
constexpr int64_t kTextHeight = kDigitHeight * kDigitScale + 4;
// Each digit's rows from top to bottom, three bits each, leftmost bit first.
constexpr uint16_t kDigits[10] = {0b111101101101111, 0b010110010010111, 0b111001111100111, 0b111001111001111,
                                  0b101101111001001, 0b111100111001111, 0b111100111101111, 0b111001001001001,
                                  0b111101111101111, 0b111101111001111};
constexpr uint8_t kPaper = 255, kInk = 40;

class Sheet {
 public:
  Sheet(int64_t height, int64_t width, int64_t channels)
      : height_(height), width_(width), channels_(channels), pixels_(height * width * channels, kPaper) {}

  uint8_t* At(int64_t y, int64_t x) { return &pixels_[(y * width_ + x) * channels_]; }

  void DrawNumber(int64_t number, int64_t top, int64_t left) {
    for (const char c : absl::StrCat(number)) {
      if (c >= '0' && c <= '9') DrawDigit(kDigits[c - '0'], top, left);
      left += (kDigitWidth + 1) * kDigitScale;
    }
  }

  absl::StatusOr<std::string> Encode() const { return EncodePng(height_, width_, channels_, pixels_); }

 private:
  void DrawDigit(uint16_t bits, int64_t top, int64_t left) {
    for (int64_t y = 0; y < kDigitHeight * kDigitScale; ++y) {
      for (int64_t x = 0; x < kDigitWidth * kDigitScale; ++x) {
        const int64_t bit = 14 - y / kDigitScale * kDigitWidth - x / kDigitScale;
        if ((bits >> bit & 1) != 0 && left + x < width_) std::fill_n(At(top + y, left + x), channels_, kInk);
      }
    }
  }

  const int64_t height_, width_, channels_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

bool IsImage(const Shape& shape) {
  return shape.rank() == 2 || (shape.rank() == 3 && (shape.dim(2) == 1 || shape.dim(2) == 3));
}

absl::StatusOr<std::string> ContactSheet(const Shape& shape, absl::Span<const float> images,
                                         absl::Span<const int64_t> labels, float black, float white) {
  const int64_t height = shape.dim(0), width = shape.dim(1), channels = shape.rank() == 3 ? shape.dim(2) : 1;
  const int64_t side = std::max(height, width);
  // A pixel of the image is drawn as `up` x `up` pixels, or each drawn pixel represents `down` x `down` of them.
  const int64_t up = std::max<int64_t>(1, kTileSide / side), down = std::max<int64_t>(1, side / kTileSide);
  const int64_t tile_height = (height + down - 1) / down * up, tile_width = (width + down - 1) / down * up;
  const auto count = static_cast<int64_t>(images.size()) / shape.num_elements();
  const int64_t columns = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count)))));
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t text = labels.empty() ? 0 : kTextHeight;
  Sheet sheet(rows * (tile_height + text + kGap) + kGap, columns * (tile_width + kGap) + kGap, channels);
  const float scale = white > black ? 255.0f / (white - black) : 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = i / columns * (tile_height + text + kGap) + kGap,
                  left = i % columns * (tile_width + kGap) + kGap;
    const float* const image = images.data() + i * shape.num_elements();
    for (int64_t y = 0; y < tile_height; ++y) {
      for (int64_t x = 0; x < tile_width; ++x) {
        const float* const from = image + (y / up * down * width + x / up * down) * channels;
        uint8_t* const to = sheet.At(top + y, left + x);
        for (int64_t c = 0; c < channels; ++c) {
          to[c] = static_cast<uint8_t>(std::lround(std::min(255.0f, std::max(0.0f, (from[c] - black) * scale))));
        }
      }
    }
    if (!labels.empty()) sheet.DrawNumber(labels[i], top + tile_height + 2, left);
  }
  return sheet.Encode();
}

}  // namespace lockstep
