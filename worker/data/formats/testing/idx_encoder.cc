#include "lockstep/worker/data/formats/testing/idx_encoder.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {

std::string EncodeIdx(absl::Span<const uint32_t> dims, absl::string_view elements) {
  std::string out = {0, 0, 8, static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(dim >> shift));
  }
  return absl::StrCat(out, elements);
}

std::string Gzip(absl::string_view contents) {
  z_stream stream = {};
  CHECK_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace lockstep
