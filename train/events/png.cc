#include "lockstep/train/events/png.h"

#include <zlib.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

// Maximum width and height. The format allows 2^31 - 1, but images for display are far smaller.
constexpr int64_t kMaxSide = 1 << 15;

// PNG color types, indexed by the number of channels minus 1.
constexpr char kColorTypes[] = {0, 4, 2, 6};

void AppendBigEndian(uint32_t number, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(number >> shift));
}

// Appends the length, the type, the content, and the checksum of type and content.
void AppendChunk(absl::string_view type, absl::string_view content, std::string* out) {
  AppendBigEndian(static_cast<uint32_t>(content.size()), out);
  const std::string checked = absl::StrCat(type, content);
  out->append(checked);
  AppendBigEndian(static_cast<uint32_t>(
                      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()))),
                  out);
}

absl::Status CheckSide(absl::string_view name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an image's ", name, " is ", value, ", must be in [1, ", most, "]"));
}

}  // namespace

absl::StatusOr<std::string> EncodePng(int64_t height, int64_t width, int64_t channels,
                                      absl::Span<const uint8_t> pixels) {
  for (const absl::Status& status : {CheckSide("height", height, kMaxSide), CheckSide("width", width, kMaxSide),
                                     CheckSide("channels", channels, 4)}) {
    if (!status.ok()) return status;
  }
  const int64_t row = width * channels;
  if (static_cast<int64_t>(pixels.size()) != height * row) {
    return absl::InvalidArgumentError(absl::StrCat("an image of [", height, ", ", width, ", ", channels, "] has ",
                                                   pixels.size(), " bytes, must have ", height * row));
  }
  std::string rows;
  rows.reserve(static_cast<size_t>(height * (row + 1)));
  for (int64_t y = 0; y < height; ++y) {
    rows.push_back('\0');  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data() + y * row), static_cast<size_t>(row));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string compressed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(&compressed[0]), &size, reinterpret_cast<const Bytef*>(rows.data()),
                static_cast<uLong>(rows.size()), Z_DEFAULT_COMPRESSION) != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat("an image of ", rows.size(), " bytes was not compressed"));
  }
  compressed.resize(size);
  std::string header;
  AppendBigEndian(static_cast<uint32_t>(width), &header);
  AppendBigEndian(static_cast<uint32_t>(height), &header);
  header.append({8, kColorTypes[channels - 1], 0, 0, 0});  // bits; color; deflate, filters by row, not interlaced
  std::string png = "\x89PNG\r\n\x1a\n";
  AppendChunk("IHDR", header, &png);
  AppendChunk("IDAT", compressed, &png);
  AppendChunk("IEND", "", &png);
  return png;
}

}  // namespace lockstep
