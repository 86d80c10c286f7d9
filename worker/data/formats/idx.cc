#include "lockstep/worker/data/formats/idx.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/worker/data/records/gzip_reader.h"

namespace lockstep {
namespace {

constexpr int kUnsignedByte = 8;
// Deflate shrinks data by at most this factor.
constexpr uint64_t kGreatestRatio = 1032;
// Larger than any file; keeps the arithmetic free of overflow.
constexpr int64_t kMaxElements = int64_t{1} << 48;

uint8_t ByteAt(absl::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// A reader that returns a file's bytes in order and inflates gzipped files.
class SequentialReader {
 public:
  SequentialReader(const RandomAccessFile* file, const std::string& path, bool gzipped) : file_(file) {
    if (gzipped) gzip_ = std::make_unique<GzipReader>(file, path);
  }

  // Returns the next `n` bytes; fewer at the end.
  absl::StatusOr<std::string> Read(uint64_t n) {
    if (gzip_) return gzip_->Read(n);
    std::string out(static_cast<size_t>(std::min<uint64_t>(n, file_->size() - offset_)), '\0');
    RETURN_IF_ERROR(file_->Read(offset_, out.size(), &out[0]));
    offset_ += out.size();
    return out;
  }

 private:
  const RandomAccessFile* const file_;
  std::unique_ptr<GzipReader> gzip_;
  uint64_t offset_ = 0;
};

// Describes the element type of an IDX array that does not hold unsigned bytes, for an error message. Returns an empty
// string if `magic` is not from an IDX array.
const char* OtherElements(absl::string_view magic) {
  if (magic[0] != 0 || magic[1] != 0) return "";
  switch (ByteAt(magic, 2)) {
    case 0x0b:
      return "; its elements are integers of 16 bits";
    case 0x0c:
      return "; its elements are integers of 32 bits";
    case 0x0d:
      return "; its elements are floats";
    case 0x0e:
      return "; its elements are doubles";
    default:
      return "";
  }
}

absl::StatusOr<std::vector<int64_t>> ReadHeader(SequentialReader* reader, const std::string& path, int min_rank,
                                                int max_rank) {
  ASSIGN_OR_RETURN(const std::string magic, reader->Read(4));
  if (magic.size() < 4) {
    return absl::DataLossError(
        absl::StrCat(path, ": ends after ", magic.size(), " bytes, an IDX header has at least 8"));
  }
  const int rank = ByteAt(magic, 3);
  if (magic[0] != 0 || magic[1] != 0 || ByteAt(magic, 2) != kUnsignedByte || rank < min_rank || rank > max_rank) {
    ASSIGN_OR_RETURN(const std::string behind, reader->Read(kForeignHeadBytes - magic.size()));
    const std::string foreign = ForeignFormat(magic + behind);
    if (!foreign.empty() || magic[0] == '<') {
      return absl::DataLossError(
          absl::StrCat(path, ": no IDX array; ",
                       foreign.empty() ? "it is a web page (HTML) or XML: download the file itself" : foreign));
    }
    return absl::DataLossError(absl::StrFormat(
        "%s: starts with %02x %02x %02x %02x, expected 00 00 08 %02x (an IDX array of bytes with %d dimensions)%s",
        path, ByteAt(magic, 0), ByteAt(magic, 1), ByteAt(magic, 2), rank, min_rank, min_rank, OtherElements(magic)));
  }
  ASSIGN_OR_RETURN(const std::string sizes, reader->Read(4 * rank));
  if (sizes.size() < 4 * static_cast<size_t>(rank)) {
    return absl::DataLossError(
        absl::StrCat(path, ": ends after ", 4 + sizes.size(), " bytes, the header has ", 4 + 4 * rank));
  }
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = int64_t{ByteAt(sizes, 4 * i)} << 24 | ByteAt(sizes, 4 * i + 1) << 16 |
                        ByteAt(sizes, 4 * i + 2) << 8 | ByteAt(sizes, 4 * i + 3);
    if (dim == 0 || dim > kMaxElements / elements) {
      return absl::DataLossError(absl::StrCat(path, ": dimension ", i, " of the array is ", dim));
    }
    elements *= dim;
    dims.push_back(dim);
  }
  return dims;
}

absl::Status WrongLength(const std::string& path, absl::Span<const int64_t> dims, uint64_t actual) {
  return absl::DataLossError(
      absl::StrCat(path, ": an array of ", absl::StrJoin(dims, " x "), " bytes expected, ", actual, " bytes follow"));
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(const ExampleSpec& spec, uint32_t crc32c, std::unique_ptr<IdxArray> images, std::vector<uint8_t> labels,
             const Normalization& normalization, bool has_labels)
      : Dataset(spec, static_cast<int64_t>(labels.size()), /*has_weights=*/false, crc32c, has_labels),
        images_(std::move(images)),
        labels_(std::move(labels)),
        normalization_(normalization) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    float* features = out->features.flat<float>().data();
    int32_t* labels = out->labels.flat<int32_t>().data();
    std::vector<uint8_t> read;
    for (size_t i = 0, run = 0; i < indices.size(); i += run) {
      // Reads consecutive examples together.
      run = 1;
      while (i + run < indices.size() && indices[i + run] == indices[i] + static_cast<int64_t>(run)) ++run;
      const size_t bytes = run * static_cast<size_t>(images_->row_bytes());
      const uint8_t* images = images_->memory();
      if (images != nullptr) {
        images += indices[i] * images_->row_bytes();
      } else {
        read.resize(bytes);
        RETURN_IF_ERROR(images_->Read(indices[i], static_cast<int64_t>(run), read.data()));
        images = read.data();
      }
      normalization_.FromBytes({images, bytes}, features);
      features += bytes;
      labels = std::copy_n(labels_.begin() + indices[i], run, labels);
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<IdxArray> images_;
  const std::vector<uint8_t> labels_;
  const Normalization normalization_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<IdxArray>> IdxArray::Open(FileSystem* fs, const std::string& path, int min_rank,
                                                         int max_rank, uint64_t held_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, fs->NewRandomAccessFile(path));
  ASSIGN_OR_RETURN(const bool gzipped, IsGzipped(*file));
  SequentialReader reader(file.get(), path, gzipped);
  std::unique_ptr<IdxArray> array(new IdxArray);
  ASSIGN_OR_RETURN(array->dims_, ReadHeader(&reader, path, min_rank, max_rank));
  const uint64_t header_bytes = 4 + 4 * array->dims_.size();
  uint64_t row_bytes = 1;
  for (size_t i = 1; i < array->dims_.size(); ++i) row_bytes *= static_cast<uint64_t>(array->dims_[i]);
  const uint64_t expected = static_cast<uint64_t>(array->dims_[0]) * row_bytes;
  if (!gzipped) {
    const uint64_t actual = file->size() - header_bytes;
    if (actual != expected) return WrongLength(path, array->dims_, actual);
    ASSIGN_OR_RETURN(array->rows_, ArrayRows::FromFile(path, std::move(file), header_bytes, row_bytes, held_bytes));
    return array;
  }
  if (expected / kGreatestRatio > file->size()) {
    return absl::DataLossError(absl::StrCat(path, ": an array of ", absl::StrJoin(array->dims_, " x "),
                                            " bytes cannot be in a compressed file of ", file->size(), " bytes"));
  }
  // Reads one byte more than expected, to detect a longer file and to verify the checksum at the end.
  ASSIGN_OR_RETURN(std::string contents, reader.Read(expected + 1));
  if (contents.size() != expected) return WrongLength(path, array->dims_, contents.size());
  array->rows_ = ArrayRows(path, std::move(contents), row_bytes);
  return array;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxDataset(FileSystem* fs, const std::string& images_path,
                                                        const std::string& labels_path, const IdxOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<IdxArray> images, IdxArray::Open(fs, images_path, 3, 4, options.held_bytes));
  std::vector<uint8_t> classes(images->dims()[0], 0);
  if (!labels_path.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<IdxArray> labels, IdxArray::Open(fs, labels_path, 1, 1, options.held_bytes));
    if (images->dims()[0] != labels->dims()[0]) {
      return absl::DataLossError(absl::StrCat(images_path, " holds ", images->dims()[0], " images, ", labels_path,
                                              " holds ", labels->dims()[0], " labels"));
    }
    RETURN_IF_ERROR(labels->Read(0, labels->dims()[0], classes.data()));
  }
  ExampleSpec spec;
  const std::vector<int64_t>& dims = images->dims();
  ASSIGN_OR_RETURN(spec.features_shape, Shape::Create({dims[1], dims[2], dims.size() == 4 ? dims[3] : 1}));
  spec.classes = 1 + *std::max_element(classes.begin(), classes.end());
  ASSIGN_OR_RETURN(const uint32_t images_crc32c, images->Checksum(fs, options.checksum));
  const absl::string_view label_bytes(reinterpret_cast<const char*>(classes.data()), classes.size());
  const uint32_t crc32c = CombineCrc32c(StartOfDigest(spec, /*has_weights=*/false), images_crc32c,
                                        static_cast<uint64_t>(images->dims()[0] * images->row_bytes()));
  return std::make_unique<IdxDataset>(spec, ExtendCrc32c(crc32c, label_bytes), std::move(images), std::move(classes),
                                      options.normalization, /*has_labels=*/!labels_path.empty());
}

}  // namespace lockstep
