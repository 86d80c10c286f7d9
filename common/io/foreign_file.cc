#include "lockstep/common/io/foreign_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

struct Signature {
  absl::string_view start;
  const char* advice;
};

constexpr char kZlib[] = "it is compressed with zlib, as TensorFlow's ZLIB records are: write it with GZIP or without";

// Some signatures contain zero bytes, hence the explicit sizes.
constexpr Signature kSignatures[] = {
    {{"\x1f\x8b", 2}, "it is gzipped: gunzip it"},
    {{"\x28\xb5\x2f\xfd", 4}, "it is compressed with zstd: unzstd it"},
    {{"\x78\x01", 2}, kZlib},
    {{"\x78\x9c", 2}, kZlib},
    {{"\x78\xda", 2}, kZlib},
    {{"BZh", 3}, "it is compressed with bzip2: bunzip2 it"},
    {{"\xfd"
      "7zXZ\0",
      6},
     "it is compressed with xz: unxz it"},
    {{"PK\x03\x04", 4},
     "it is a ZIP archive, such as npz, Excel or PyTorch files: use npz, or save it as CSV or safetensors"},
    {{"\xd0\xcf\x11\xe0", 4}, "it is an old Excel workbook: save it as CSV"},
    {{"7z\xbc\xaf", 4}, "it is a 7z archive: unpack it"},
    {{"PAR1", 4}, "it is a Parquet file: write it as CSV or npz, with pandas for example"},
    {{"ARROW1", 6}, "it is an Arrow file: write it as CSV or npz, with pandas for example"},
    {{"\x89HDF", 4}, "it is an HDF5 file: write its arrays as npz, with h5py for example"},
    {{"\x89PNG", 4}, "it is a PNG image"},
    {{"\xff\xd8\xff", 3}, "it is a JPEG image"},
    {{"%PDF-", 5}, "it is a PDF document"},
    {{"\x93NUMPY", 6}, "it is an array of NumPy: use npy"},
    {{"version https://git-lfs", 23}, "it is a pointer of Git LFS: run git lfs pull"},
    {{"\x80\x02", 2}, "it is a Python pickle, as torch.save of old writes: save it as safetensors"},
    {{"\x80\x04", 2}, "it is a Python pickle: save it as npz"},
};

}  // namespace

std::string ForeignFormat(absl::string_view head) {
  for (const Signature& signature : kSignatures) {
    if (absl::StartsWith(head, signature.start)) return signature.advice;
  }
  if (absl::StartsWith(head, "\xEF\xBB\xBF")) head.remove_prefix(3);
  const std::string text = absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(head));
  if (absl::StartsWith(text, "<!doctype html") || absl::StartsWith(text, "<html")) {
    return "it is a web page (HTML): download the file itself, not the page that shows it";
  }
  if (absl::StartsWith(text, "<?xml")) return "it is XML, perhaps the error of a download";
  return "";
}

std::string ForeignFormatOf(const RandomAccessFile& file) {
  std::string head(static_cast<size_t>(std::min<uint64_t>(file.size(), kForeignHeadBytes)), '\0');
  if (!file.Read(0, head.size(), &head[0]).ok()) return "";
  const std::string format = ForeignFormat(head);
  return format.empty() ? "" : absl::StrCat("; ", format);
}

}  // namespace lockstep
