#include "lockstep/worker/data/records/data_file.h"

#include <errno.h>
#include <iconv.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/records/gzip_reader.h"

namespace lockstep {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
// A file may decompress to kSmallBytes or to kMaxRatio times its own size, whichever is greater. The ratio is deflate's
// maximum; zstd's is far greater, but real data do not need it.
constexpr uint64_t kSmallBytes = 1 << 20;
constexpr uint64_t kMaxRatio = 1032;
// Number of bytes at the start of a text from which its encoding is recognized.
constexpr size_t kHeadBytes = 64 << 10;
// A frame may request a window of up to 2 GiB. RFC 8878 recommends supporting 8 MiB, which `zstd -19` uses.
constexpr int kMaxZstdWindowLog = 23;
// Number of bytes of a record's length in a TFRecord file. The length's checksum follows.
constexpr size_t kLengthBytes = 8;

// A file whose decoded contents are in memory.
class DecodedFile : public RandomAccessFile {
 public:
  DecodedFile(const std::string& path, const RandomAccessFile& file, std::string contents)
      : path_(path),
        contents_(std::move(contents)),
        modification_time_(file.modification_time()),
        inode_(file.inode()),
        change_time_(file.change_time()) {}

  uint64_t size() const override { return contents_.size(); }
  absl::Time modification_time() const override { return modification_time_; }
  uint64_t inode() const override { return inode_; }
  absl::Time change_time() const override { return change_time_; }

  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    if (offset > contents_.size() || n > contents_.size() - offset) {
      return absl::DataLossError(absl::StrCat("cannot read bytes ", offset, " to ", offset + n, " of ", path_,
                                              ": decoded, it ends at byte ", contents_.size()));
    }
    std::memcpy(out, contents_.data() + offset, n);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string contents_;
  const absl::Time modification_time_;
  const uint64_t inode_;
  const absl::Time change_time_;
};

absl::Status TooLarge(const std::string& path, uint64_t max_bytes) {
  return absl::DataLossError(absl::StrCat(path, ": has more than ", max_bytes,
                                          " bytes when decoded, which are held in memory; decompress it to a file"));
}

absl::StatusOr<std::string> ReadAll(const std::string& path, const RandomAccessFile& file, uint64_t max_bytes) {
  if (file.size() > max_bytes) return TooLarge(path, max_bytes);
  std::string contents(static_cast<size_t>(file.size()), '\0');
  RETURN_IF_ERROR(file.Read(0, contents.size(), &contents[0]));
  return contents;
}

absl::StatusOr<std::string> Gunzip(const std::string& path, const RandomAccessFile& file, uint64_t max_bytes) {
  GzipReader reader(&file, path);
  ASSIGN_OR_RETURN(std::string contents, reader.Read(max_bytes + 1));
  if (contents.size() > max_bytes) return TooLarge(path, max_bytes);
  return contents;
}

absl::StatusOr<std::string> DecompressZstd(const std::string& path, const RandomAccessFile& file, uint64_t max_bytes) {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  if (context == nullptr) return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to decompress it"));
  const auto free_context = absl::MakeCleanup([context] { ZSTD_freeDCtx(context); });
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  std::string contents, input, output(kChunkBytes, '\0');
  // Number of bytes that the last call still expects, or 0 at the end of a frame.
  size_t expected = 0;
  for (uint64_t offset = 0; offset < file.size();) {
    input.resize(static_cast<size_t>(std::min<uint64_t>(kChunkBytes, file.size() - offset)));
    RETURN_IF_ERROR(file.Read(offset, input.size(), &input[0]));
    offset += input.size();
    ZSTD_inBuffer in = {input.data(), input.size(), 0};
    ZSTD_outBuffer out = {&output[0], output.size(), 0};
    do {
      out.pos = 0;
      expected = ZSTD_decompressStream(context, &out, &in);
      if (ZSTD_isError(expected)) {
        return absl::DataLossError(absl::StrCat(path, ": does not decompress near byte ", offset - (in.size - in.pos),
                                                " of ", file.size(), ": ", ZSTD_getErrorName(expected)));
      }
      contents.append(output, 0, out.pos);
      if (contents.size() > max_bytes) return TooLarge(path, max_bytes);
    } while (in.pos < in.size || (out.pos == out.size && expected != 0));
  }
  if (expected == 0) return contents;
  return absl::DataLossError(absl::StrCat(path, ": the compressed file ends early, after ", file.size(), " bytes"));
}

// Returns "UTF-16LE" or "UTF-16BE" for UTF-16 text, otherwise null.
const char* Utf16Name(absl::string_view head) {
  if (absl::StartsWith(head, "\xFF\xFE")) return "UTF-16LE";
  if (absl::StartsWith(head, "\xFE\xFF")) return "UTF-16BE";
  // Without a byte order mark, UTF-16 is recognized by its first characters. They are names or numbers, so one byte of
  // each is zero, always on the same side.
  const size_t size = std::min<size_t>(head.size() / 2 * 2, 64);
  if (size < 4) return nullptr;
  size_t low = 0, high = 0;
  for (size_t i = 0; i < size; i += 2) {
    low += head[i] == '\0' && head[i + 1] != '\0';
    high += head[i + 1] == '\0' && head[i] != '\0';
  }
  if (high == size / 2) return "UTF-16LE";
  return low == size / 2 ? "UTF-16BE" : nullptr;
}

absl::StatusOr<std::string> FromUtf16(const std::string& path, absl::string_view text, const char* encoding,
                                      uint64_t max_bytes) {
  if (absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF")) text.remove_prefix(2);
  const iconv_t conversion = iconv_open("UTF-8", encoding);
  if (conversion == reinterpret_cast<iconv_t>(-1)) {
    return absl::UnimplementedError(absl::StrCat(path, ": is in ", encoding, ", which this system does not convert"));
  }
  const auto close = absl::MakeCleanup([conversion] { iconv_close(conversion); });
  std::string contents, output(kChunkBytes, '\0');
  char* in = const_cast<char*>(text.data());
  size_t left = text.size();
  while (left > 0) {
    char* out = &output[0];
    size_t room = output.size();
    const bool failed = iconv(conversion, &in, &left, &out, &room) == static_cast<size_t>(-1);
    const int error = errno;
    contents.append(output, 0, output.size() - room);
    if (contents.size() > max_bytes) return TooLarge(path, max_bytes);
    if (failed && error != E2BIG) {
      return absl::DataLossError(absl::StrCat(path, ": is not ", encoding, " at byte ", in - text.data()));
    }
  }
  return contents;
}

bool EndsLinesInCr(absl::string_view head) { return absl::StrContains(head, '\r') && !absl::StrContains(head, '\n'); }

// Returns true if the data begins with the first record of a TFRecord file. The record's length could look like the
// signature of another format.
bool StartsWithRecord(absl::string_view head) {
  return head.size() >= kLengthBytes + 4 &&
         MaskCrc32c(Crc32c(head.substr(0, kLengthBytes))) == LoadLittleEndian<uint32_t>(head.data() + kLengthBytes);
}

absl::StatusOr<std::string> Head(const RandomAccessFile& file) {
  std::string head(static_cast<size_t>(std::min<uint64_t>(kHeadBytes, file.size())), '\0');
  RETURN_IF_ERROR(file.Read(0, head.size(), &head[0]));
  return head;
}

// Converts the contents to UTF-8 with LF line ends, unless `file` already has this form.
absl::StatusOr<std::unique_ptr<RandomAccessFile>> AsText(const std::string& path,
                                                         std::unique_ptr<RandomAccessFile> file, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::string head, Head(*file));
  const char* const utf16 = Utf16Name(head);
  if (utf16 == nullptr && !EndsLinesInCr(head)) return file;
  ASSIGN_OR_RETURN(std::string contents, ReadAll(path, *file, max_bytes));
  if (utf16 != nullptr) {
    ASSIGN_OR_RETURN(contents, FromUtf16(path, contents, utf16, max_bytes));
  }
  if (EndsLinesInCr(absl::string_view(contents).substr(0, kHeadBytes))) {
    std::replace(contents.begin(), contents.end(), '\r', '\n');
  }
  return std::make_unique<DecodedFile>(path, *file, std::move(contents));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenDataFile(FileSystem* fs, const std::string& path,
                                                               DataFileKind kind, uint64_t max_decoded_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, fs->NewRandomAccessFile(path));
  ASSIGN_OR_RETURN(const std::string head, Head(*file));
  if (kind == DataFileKind::kTfRecord && StartsWithRecord(head)) return file;
  max_decoded_bytes = std::min(max_decoded_bytes, kSmallBytes + kMaxRatio * file->size());
  if (absl::StartsWith(head, "\x1f\x8b")) {
    ASSIGN_OR_RETURN(std::string contents, Gunzip(path, *file, max_decoded_bytes));
    file = std::make_unique<DecodedFile>(path, *file, std::move(contents));
  } else if (absl::StartsWith(head, "\x28\xB5\x2F\xFD")) {
    ASSIGN_OR_RETURN(std::string contents, DecompressZstd(path, *file, max_decoded_bytes));
    file = std::make_unique<DecodedFile>(path, *file, std::move(contents));
  }
  if (kind == DataFileKind::kText) {
    ASSIGN_OR_RETURN(file, AsText(path, std::move(file), max_decoded_bytes));
  }
  ASSIGN_OR_RETURN(const std::string decoded, Head(*file));
  if (kind == DataFileKind::kTfRecord && StartsWithRecord(decoded)) return file;
  const std::string foreign = ForeignFormat(absl::string_view(decoded).substr(0, kForeignHeadBytes));
  if (!foreign.empty()) return absl::DataLossError(absl::StrCat(path, ": no data can be read: ", foreign));
  return file;
}

std::string FromUtf8OrLatin1(absl::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8.push_back(c);
    } else {
      utf8.push_back(static_cast<char>(0xC0 | (byte >> 6)));
      utf8.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return utf8;
}

}  // namespace lockstep
