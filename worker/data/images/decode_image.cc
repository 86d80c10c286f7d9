#include "lockstep/worker/data/images/decode_image.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/worker/data/images/decode_jpeg.h"
#include "lockstep/worker/data/images/decode_png.h"

namespace lockstep {
namespace {

constexpr absl::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr absl::string_view kJpegSignature("\xff\xd8\xff", 3);
constexpr size_t kShownBytes = 8;

// Returns the name of the unsupported image format of the file, or an empty string if the format is not recognized.
absl::string_view OtherImage(absl::string_view encoded) {
  if (absl::StartsWith(encoded, "GIF8")) return "GIF";
  if (absl::StartsWith(encoded, "BM")) return "BMP";
  if (absl::StartsWith(encoded, "RIFF") && encoded.size() >= 12 && encoded.substr(8, 4) == "WEBP") return "WebP";
  if (absl::StartsWith(encoded, absl::string_view("II*\0", 4)) ||
      absl::StartsWith(encoded, absl::string_view("MM\0*", 4))) {
    return "TIFF";
  }
  if (encoded.size() >= 12 && encoded.substr(4, 4) == "ftyp") return "HEIF or AVIF";
  return "";
}

absl::Status NoImage(absl::string_view encoded) {
  if (encoded.empty()) return absl::DataLossError("the image is empty");
  const absl::string_view other = OtherImage(encoded);
  if (!other.empty()) {
    return absl::DataLossError(
        absl::StrCat("the image is ", other, ", must be PNG or JPEG; convert it, with ImageMagick for one"));
  }
  const std::string foreign = ForeignFormat(encoded.substr(0, kForeignHeadBytes));
  if (!foreign.empty()) return absl::DataLossError(absl::StrCat("no image: ", foreign));
  return absl::DataLossError(absl::StrCat("no PNG or JPEG image: it starts with ",
                                          absl::BytesToHexString(encoded.substr(0, kShownBytes)), " (hexadecimal)"));
}

ByteImage ToGrey(const ByteImage& colours) {
  ByteImage grey = {colours.height, colours.width, 1, std::vector<uint8_t>(colours.pixels.size() / 3)};
  const uint8_t* rgb = colours.pixels.data();
  for (uint8_t& y : grey.pixels) {
    y = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
    rgb += 3;
  }
  return grey;
}

ByteImage ToColours(const ByteImage& grey) {
  ByteImage colours = {grey.height, grey.width, 3, std::vector<uint8_t>(grey.pixels.size() * 3)};
  uint8_t* rgb = colours.pixels.data();
  for (const uint8_t y : grey.pixels) rgb = std::fill_n(rgb, 3, y);
  return colours;
}

}  // namespace

absl::StatusOr<ByteImage> DecodeImage(absl::string_view encoded, int64_t channels, int64_t max_pixels) {
  ByteImage image;
  if (absl::StartsWith(encoded, kPngSignature)) {
    ASSIGN_OR_RETURN(image, DecodePng(encoded, max_pixels));
  } else if (absl::StartsWith(encoded, kJpegSignature)) {
    ASSIGN_OR_RETURN(image, DecodeJpeg(encoded, /*wants_grey=*/channels == 1, max_pixels));
  } else {
    return NoImage(encoded);
  }
  if (image.channels == channels) return image;
  return channels == 1 ? ToGrey(image) : ToColours(image);
}

std::string ImageDecoderVersion() { return absl::StrCat(PngDecoderVersion(), ", ", JpegDecoderVersion()); }

}  // namespace lockstep
