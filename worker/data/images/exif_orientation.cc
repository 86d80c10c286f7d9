#include "lockstep/worker/data/images/exif_orientation.h"

#include <cstdint>

#include "absl/strings/match.h"

namespace lockstep {
namespace {

constexpr int kUpright = 1;
constexpr uint32_t kOrientationTag = 0x0112, kShortType = 3;
constexpr uint32_t kEntryBytes = 12;

// A reader of unsigned numbers in a TIFF structure. Numbers beyond the end of the structure read as 0.
class TiffNumbers {
 public:
  TiffNumbers(absl::string_view bytes, bool little_endian) : bytes_(bytes), little_endian_(little_endian) {}

  uint32_t Read(uint64_t at, int size) const {
    if (at + size > bytes_.size()) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      const uint64_t place = little_endian_ ? at + size - 1 - i : at + i;
      value = value << 8 | static_cast<uint8_t>(bytes_[place]);
    }
    return value;
  }

 private:
  const absl::string_view bytes_;
  const bool little_endian_;
};

// Returns the orientation. `tiff` is the data that follows "Exif" in the segment.
int OrientationIn(absl::string_view tiff) {
  if (!absl::StartsWith(tiff, "II") && !absl::StartsWith(tiff, "MM")) return kUpright;
  const TiffNumbers numbers(tiff, tiff[0] == 'I');
  const uint64_t directory = numbers.Read(4, 4);
  const uint32_t entries = numbers.Read(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{kEntryBytes} * i;
    if (numbers.Read(entry, 2) != kOrientationTag || numbers.Read(entry + 2, 2) != kShortType) continue;
    const uint32_t orientation = numbers.Read(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : kUpright;
  }
  return kUpright;
}

}  // namespace

int ExifOrientation(absl::string_view encoded) {
  constexpr uint8_t kStartOfScan = 0xda, kApplication1 = 0xe1;
  if (!absl::StartsWith(encoded, "\xff\xd8")) return kUpright;
  encoded.remove_prefix(2);
  // Each segment consists of a marker of two bytes, a length that includes its own two bytes, and the contents.
  while (encoded.size() >= 4 && static_cast<uint8_t>(encoded[0]) == 0xff) {
    const auto marker = static_cast<uint8_t>(encoded[1]);
    const size_t length = static_cast<uint8_t>(encoded[2]) << 8 | static_cast<uint8_t>(encoded[3]);
    if (marker == kStartOfScan || length < 2 || length + 2 > encoded.size()) return kUpright;
    absl::string_view contents = encoded.substr(4, length - 2);
    constexpr absl::string_view kExif("Exif\0\0", 6);
    if (marker == kApplication1 && absl::StartsWith(contents, kExif))
      return OrientationIn(contents.substr(kExif.size()));
    encoded.remove_prefix(length + 2);
  }
  return kUpright;
}

}  // namespace lockstep
