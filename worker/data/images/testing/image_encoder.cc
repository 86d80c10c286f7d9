#include "lockstep/worker/data/images/testing/image_encoder.h"

// jpeglib.h uses FILE and size_t without declaring them.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <png.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "glog/logging.h"

namespace lockstep {
namespace {

void Append(png_structp png, png_bytep data, size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

// Returns row `y` as it is stored in the file.
std::vector<uint8_t> PngRow(const ByteImage& image, const PngEncoding& encoding, int64_t y) {
  std::vector<uint8_t> row;
  const auto add = [&](uint8_t byte) {
    row.push_back(byte);
    if (encoding.bit_depth == 16) row.push_back(0x7f);
  };
  for (int64_t x = 0; x < image.width; ++x) {
    for (int64_t c = 0; c < image.channels; ++c) add(image.pixels[(y * image.width + x) * image.channels + c]);
    if (encoding.alpha) add(static_cast<uint8_t>(x));
  }
  return row;
}

}  // namespace

ByteImage TestImage(int64_t height, int64_t width, int64_t channels, int seed) {
  ByteImage image = {height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>((7 * y * (c + 1) + 5 * x + 40 * c + 31 * seed) % 256));
      }
    }
  }
  return image;
}

std::string EncodePng(const ByteImage& image, const PngEncoding& encoding) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  CHECK(setjmp(png_jmpbuf(png)) == 0);
  png_set_write_fn(png, &file, Append, nullptr);
  int type = image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
  if (encoding.alpha) type |= PNG_COLOR_MASK_ALPHA;
  if (encoding.palette) type = PNG_COLOR_TYPE_PALETTE;
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               encoding.bit_depth, type, encoding.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<std::vector<uint8_t>> rows;
  for (int64_t y = 0; y < image.height; ++y) rows.push_back(PngRow(image, encoding, y));
  if (encoding.palette) {
    std::map<std::vector<uint8_t>, uint8_t> index;
    std::vector<png_color> colours;
    for (std::vector<uint8_t>& row : rows) {
      std::vector<uint8_t> indices;
      for (size_t at = 0; at < row.size(); at += 3) {
        const std::vector<uint8_t> colour(row.begin() + at, row.begin() + at + 3);
        const auto [found, is_new] = index.emplace(colour, static_cast<uint8_t>(index.size()));
        if (is_new) colours.push_back({colour[0], colour[1], colour[2]});
        indices.push_back(found->second);
      }
      row = indices;
    }
    CHECK(colours.size() <= 256);
    png_set_PLTE(png, info, colours.data(), static_cast<int>(colours.size()));
    const png_byte alpha = 100;
    png_set_tRNS(png, info, &alpha, 1, nullptr);
  }
  std::vector<png_bytep> pointers;
  for (std::vector<uint8_t>& row : rows) pointers.push_back(row.data());
  png_write_info(png, info);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string EncodeJpeg(const ByteImage& image, const JpegEncoding& encoding) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = encoding.cmyk ? 4 : static_cast<int>(image.channels);
  info.in_color_space = encoding.cmyk ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, encoding.quality, TRUE);
  if (encoding.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int64_t y = 0; y < image.height; ++y) {
    std::vector<uint8_t> row;
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        row.push_back(image.pixels[(y * image.width + x) * image.channels + c]);
      }
      if (encoding.cmyk) row.push_back(155);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string file(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return file;
}

}  // namespace lockstep
