#include "lockstep/worker/data/images/image_form.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

using Config = config::v1::InputConfig::ImageForm;

constexpr int64_t kMaxSide = 1 << 16;

// The part of an image's side that the output shows: `size` positions starting at `first`.
struct Range {
  double first;
  double size;
};

// The two positions between which an output lies, and its distance from the first one.
struct Place {
  int64_t before;
  int64_t after;
  float fraction;
};

// Maps the output positions of one side to an image with `input` positions.
std::vector<Place> PlacesOf(const Range& range, int64_t input, int64_t output) {
  const double last = static_cast<double>(input - 1);
  std::vector<Place> places(output);
  for (int64_t i = 0; i < output; ++i) {
    const double at = range.first + (static_cast<double>(i) + 0.5) * range.size / static_cast<double>(output) - 0.5;
    const double clamped = std::min(std::max(at, 0.0), last);
    const double before = std::floor(clamped);
    places[i].before = static_cast<int64_t>(before);
    places[i].after = std::min(places[i].before + 1, input - 1);
    places[i].fraction = static_cast<float>(clamped - before);
  }
  return places;
}

}  // namespace

absl::StatusOr<ImageForm> ImageForm::Create(const Config& config) {
  const auto refuse = [](const char* field, int64_t value, const char* range) {
    return absl::InvalidArgumentError(absl::StrCat("the image's ", field, " is ", value, ", must be ", range));
  };
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMaxSide; };
  if (!is_side(config.height())) return refuse("height", config.height(), "in [1, 65536]");
  if (!is_side(config.width())) return refuse("width", config.width(), "in [1, 65536]");
  const int64_t channels = config.has_channels() ? config.channels() : 3;
  if (channels != 1 && channels != 3) return refuse("channels", channels, "1 or 3");
  if (config.height() > kMaxImagePixels / config.width())
    return refuse("height", config.height(), "smaller: the image has more pixels than the largest one that is read");
  ImageForm form;
  ASSIGN_OR_RETURN(form.shape_, Shape::Create({config.height(), config.width(), channels}));
  form.fit_ = config.fit();
  return form;
}

std::string ImageForm::Fingerprint() const {
  return absl::StrCat("image ", shape_.ToString(), " ", fit_, " ", ImageDecoderVersion());
}

absl::Status ImageForm::Fill(absl::string_view encoded, float* out) const {
  ASSIGN_OR_RETURN(const ByteImage image, DecodeImage(encoded, channels()));
  if (fit_ == Config::EXACT && (image.height != height() || image.width != width())) {
    return absl::DataLossError(absl::StrCat("the image has ", image.height, " x ", image.width, " pixels, expected ",
                                            height(), " x ", width(), " (height x width)"));
  }
  Resize(image, out);
  return absl::OkStatus();
}

void ImageForm::Resize(const ByteImage& image, float* out) const {
  Range rows = {0, static_cast<double>(image.height)};
  Range columns = {0, static_cast<double>(image.width)};
  if (fit_ == Config::CROP) {
    // Compares the aspect ratios without rounding.
    if (image.width * height() > image.height * width()) {
      columns.size = rows.size * static_cast<double>(width()) / static_cast<double>(height());
      columns.first = (static_cast<double>(image.width) - columns.size) / 2;
    } else {
      rows.size = columns.size * static_cast<double>(height()) / static_cast<double>(width());
      rows.first = (static_cast<double>(image.height) - rows.size) / 2;
    }
  }
  const std::vector<Place> ys = PlacesOf(rows, image.height, height());
  const std::vector<Place> xs = PlacesOf(columns, image.width, width());
  const int64_t row_bytes = image.width * image.channels;
  for (const Place& y : ys) {
    const uint8_t* const upper_row = image.pixels.data() + y.before * row_bytes;
    const uint8_t* const lower_row = image.pixels.data() + y.after * row_bytes;
    for (const Place& x : xs) {
      for (int64_t c = 0; c < image.channels; ++c) {
        const int64_t left = x.before * image.channels + c, right = x.after * image.channels + c;
        const float upper_left = upper_row[left], lower_left = lower_row[left];
        const float upper = upper_left + (static_cast<float>(upper_row[right]) - upper_left) * x.fraction;
        const float lower = lower_left + (static_cast<float>(lower_row[right]) - lower_left) * x.fraction;
        *out++ = (upper + (lower - upper) * y.fraction) / 255.0f;
      }
    }
  }
}

}  // namespace lockstep
