#include "lockstep/worker/data/images/decode_jpeg.h"

// jpeglib.h uses FILE and size_t without declaring them, and jerror.h needs it.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// A typical progressive image has about ten scans. Each scan takes as long to decode as a whole image.
constexpr int kMaxScans = 100;
// Memory for tables and rows, in addition to the coefficients.
constexpr int64_t kFixedBytes = 32 << 20;
// A progressive image has a coefficient of 2 bytes per pixel in each of up to 4 components.
constexpr int64_t kBytesPerPixel = 8;

#define LOCKSTEP_TEXT_OF(x) #x
#define LOCKSTEP_TEXT(x) LOCKSTEP_TEXT_OF(x)

// Returns true for a warning that does not affect the pixels.
bool IsHarmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_TOO_MUCH_DATA;
}

// A reader that decodes one file. libjpeg reports an error by jumping (longjmp) to the method that called it, so these
// methods have no objects with destructors.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = &JpegReader::OnError;
    errors_.emit_message = &JpegReader::OnMessage;
    errors_.output_message = &JpegReader::OnOutput;
    info_.client_data = this;
  }
  ~JpegReader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  const char* error() const { return error_; }
  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }
  // The number of channels in the decoder's rows. Valid after Start.
  int64_t channels() const { return info_.output_components; }
  bool is_cmyk() const { return info_.out_color_space == JCS_CMYK; }
  bool is_inverted() const { return info_.saw_Adobe_marker != 0; }

  bool ReadHeader(absl::string_view encoded, int64_t max_pixels) {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.client_data = this;
    info_.mem->max_memory_to_use = kFixedBytes + kBytesPerPixel * max_pixels;
    progress_.progress_monitor = &JpegReader::OnProgress;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  // Returns false if decoding cannot start, for example because the number of components is not supported.
  bool Start(bool wants_grey) {
    if (setjmp(jump_) != 0) return false;
    switch (info_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        info_.out_color_space = JCS_GRAYSCALE;
        break;
      case JCS_YCbCr:
        info_.out_color_space = wants_grey ? JCS_GRAYSCALE : JCS_RGB;
        break;
      case JCS_RGB:
        info_.out_color_space = JCS_RGB;
        break;
      case JCS_CMYK:
      case JCS_YCCK:
        info_.out_color_space = JCS_CMYK;
        break;
      default:
        std::snprintf(error_, sizeof(error_), "it has %d components", info_.num_components);
        return false;
    }
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    info_.do_block_smoothing = FALSE;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool ReadRow(uint8_t* out) {
    if (setjmp(jump_) != 0) return false;
    JSAMPROW row = out;
    return jpeg_read_scanlines(&info_, &row, 1) == 1;
  }

  bool Finish() {
    if (setjmp(jump_) != 0) return false;
    return jpeg_finish_decompress(&info_) != FALSE;
  }

 private:
  static JpegReader* Self(j_common_ptr info) { return static_cast<JpegReader*>(info->client_data); }

  [[noreturn]] static void OnError(j_common_ptr info) {
    JpegReader* const self = Self(info);
    info->err->format_message(info, self->error_);
    std::longjmp(self->jump_, 1);
  }

  // Warnings have negative levels.
  static void OnMessage(j_common_ptr info, int level) {
    if (level < 0 && !IsHarmless(info->err->msg_code)) OnError(info);
  }

  static void OnOutput(j_common_ptr) {}

  static void OnProgress(j_common_ptr info) {
    JpegReader* const self = Self(info);
    if (self->info_.input_scan_number <= kMaxScans) return;
    std::snprintf(self->error_, sizeof(self->error_), "it has more than %d scans", kMaxScans);
    std::longjmp(self->jump_, 1);
  }

  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  jmp_buf jump_;
  char error_[JMSG_LENGTH_MAX] = "it ends early";
  bool created_ = false;
};

// Converts a row of CMYK to red, green and blue.
void FromCmyk(const uint8_t* cmyk, bool inverted, int64_t width, uint8_t* out) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, out += 3) {
    const int k = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>((inverted ? cmyk[c] : 255 - cmyk[c]) * k / 255);
  }
}

}  // namespace

absl::StatusOr<ByteImage> DecodeJpeg(absl::string_view encoded, bool wants_grey, int64_t max_pixels) {
  JpegReader reader;
  const auto damage = [&] { return absl::DataLossError(absl::StrCat("the JPEG image is damaged: ", reader.error())); };
  if (!reader.ReadHeader(encoded, max_pixels)) return damage();
  ByteImage image;
  image.height = reader.height();
  image.width = reader.width();
  if (image.height < 1 || image.width > max_pixels / image.height) {
    return absl::DataLossError(absl::StrCat("the image has ", image.height, " x ", image.width, " pixels, more than ",
                                            max_pixels, "; scale it down"));
  }
  if (!reader.Start(wants_grey)) return damage();
  image.channels = reader.channels() == 1 ? 1 : 3;
  const int64_t row_bytes = image.width * image.channels;
  image.pixels.resize(image.height * row_bytes);
  std::vector<uint8_t> cmyk(reader.is_cmyk() ? image.width * 4 : 0);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* const row = image.pixels.data() + y * row_bytes;
    if (!reader.ReadRow(reader.is_cmyk() ? cmyk.data() : row)) return damage();
    if (reader.is_cmyk()) FromCmyk(cmyk.data(), reader.is_inverted(), image.width, row);
  }
  if (!reader.Finish()) return damage();
  return image;
}

std::string JpegDecoderVersion() { return "libjpeg-turbo " LOCKSTEP_TEXT(LIBJPEG_TURBO_VERSION); }

}  // namespace lockstep
