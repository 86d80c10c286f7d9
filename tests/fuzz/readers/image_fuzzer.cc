#include <zlib.h>

#include "glog/logging.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/worker/data/images/decode_image.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxPixels = 1 << 16;
constexpr size_t kSignatureBytes = 8;

// Corrects the checksum of every chunk of a PNG file, because a fuzzer cannot guess a checksum.
std::string WithChunkChecksums(absl::string_view file) {
  std::string fixed(file);
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(fixed[at])); };
  for (size_t at = kSignatureBytes; at + 12 <= fixed.size();) {
    const size_t length = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (length > fixed.size() - at - 12) break;
    const uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(&fixed[at + 4]), static_cast<uInt>(length + 4));
    for (int i = 0; i < 4; ++i) fixed[at + 8 + length + i] = static_cast<char>(checksum >> (24 - 8 * i));
    at += 12 + length;
  }
  return fixed;
}

// The input is a byte (1: gray, 2: correct the checksums of a PNG), followed by the file.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const uint8_t bits = in.TakeByte();
  const int64_t channels = (bits & 1) ? 1 : 3;
  const std::string file = (bits & 2) ? WithChunkChecksums(in.rest()) : std::string(in.rest());
  const auto image = DecodeImage(file, channels, kMaxPixels);
  if (!image.ok()) {
    CHECK(absl::IsDataLoss(image.status())) << image.status();
    return false;
  }
  CHECK(image->height > 0 && image->width > 0 && image->width <= kMaxPixels / image->height);
  CHECK_EQ(image->channels, channels);
  CHECK_EQ(static_cast<int64_t>(image->pixels.size()), image->height * image->width * channels);
  return true;
}

std::vector<std::string> Seeds() {
  const ByteImage colours = TestImage(5, 7, 3), grey = TestImage(5, 7, 1);
  std::vector<std::string> seeds;
  for (const std::string& file : {EncodePng(colours), EncodePng(grey, {16}), EncodePng(colours, {8, true, true}),
                                  EncodePng(colours, {8, false, false, true}), EncodeJpeg(colours), EncodeJpeg(grey),
                                  EncodeJpeg(colours, {50, true}), EncodeJpeg(colours, {50, false, true})}) {
    seeds.push_back(std::string(1, '\2') + file);
  }
  return seeds;
}

// Each gray pixel becomes three bytes, in addition to the original byte.
const FuzzTarget kTarget({"image", 4 * kMaxPixels + (1 << 20), 64, Run, Seeds, 2048});

}  // namespace
}  // namespace lockstep
