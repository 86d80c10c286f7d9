#include "lockstep/worker/data/images/decode_png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Deflate shrinks data by at most this factor.
constexpr int64_t kMaxRatio = 1032;
constexpr png_alloc_size_t kMaxChunkBytes = 1 << 20;

// A reader that decodes one file. libpng reports an error by jumping (longjmp) to the method that called it, so these
// methods have no objects with destructors.
class PngReader {
 public:
  explicit PngReader(absl::string_view encoded)
      : rest_(encoded),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::OnError, &PngReader::OnWarning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool created() const { return info_ != nullptr; }
  const char* error() const { return error_; }
  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  // The number of channels, and of bytes in a row. Valid after Convert.
  int64_t channels() const { return png_get_channels(png_, info_); }
  int64_t row_bytes() const { return static_cast<int64_t>(png_get_rowbytes(png_, info_)); }

  // Reads everything before the pixels.
  bool ReadHeader() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, &PngReader::OnRead);
    // The decoder skips all chunks that the pixels do not need, which may expand to any size.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    png_read_info(png_, info_);
    return true;
  }

  // Makes libpng convert the pixels to 8 bits per channel, either gray or red, green and blue.
  bool Convert() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const png_byte type = png_get_color_type(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool ReadRows(uint8_t* out) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    for (int pass = 0; pass < passes_; ++pass) {
      for (int64_t row = 0; row < height(); ++row) png_read_row(png_, out + row * row_bytes(), nullptr);
    }
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  static void OnRead(png_structp png, png_bytep out, size_t size) {
    auto* const self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (self->rest_.size() < size) png_error(png, "the file ends early");
    std::memcpy(out, self->rest_.data(), size);
    self->rest_.remove_prefix(size);
  }

  [[noreturn]] static void OnError(png_structp png, png_const_charp message) {
    auto* const self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->error_, message, sizeof(self->error_) - 1);
    png_longjmp(png, 1);
  }

  static void OnWarning(png_structp, png_const_charp) {}

  absl::string_view rest_;
  char error_[128] = "no memory";
  png_structp png_;
  png_infop info_;
  int passes_ = 1;
};

}  // namespace

absl::StatusOr<ByteImage> DecodePng(absl::string_view encoded, int64_t max_pixels) {
  PngReader reader(encoded);
  const auto damage = [&] { return absl::DataLossError(absl::StrCat("the PNG image is damaged: ", reader.error())); };
  if (!reader.created() || !reader.ReadHeader()) return damage();
  ByteImage image;
  image.height = reader.height();
  image.width = reader.width();
  if (image.width > max_pixels / image.height) {
    return absl::DataLossError(absl::StrCat("the image has ", image.height, " x ", image.width, " pixels, more than ",
                                            max_pixels, "; scale it down"));
  }
  if (!reader.Convert()) return damage();
  image.channels = reader.channels();
  if ((image.channels != 1 && image.channels != 3) || reader.row_bytes() != image.width * image.channels) {
    return absl::DataLossError(absl::StrCat("the PNG image has ", image.channels, " channels"));
  }
  // Before compression, a pixel takes at least one bit.
  const int64_t least_bytes = image.height * ((image.width + 7) / 8);
  if (least_bytes / kMaxRatio > static_cast<int64_t>(encoded.size())) {
    return absl::DataLossError(absl::StrCat("the PNG image is damaged: ", image.height, " x ", image.width,
                                            " pixels cannot be in ", encoded.size(), " bytes"));
  }
  image.pixels.resize(image.height * reader.row_bytes());
  if (!reader.ReadRows(image.pixels.data())) return damage();
  return image;
}

std::string PngDecoderVersion() { return absl::StrCat("libpng ", png_get_libpng_ver(nullptr)); }

}  // namespace lockstep
