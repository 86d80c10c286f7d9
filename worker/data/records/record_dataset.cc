#include "lockstep/worker/data/records/record_dataset.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/worker/data/records/gzip_reader.h"

namespace lockstep {
namespace {

struct Part {
  std::string path;
  std::unique_ptr<RandomAccessFile> file;
  std::unique_ptr<RecordIndex> index;
  // Index of its first record in the dataset.
  int64_t first = 0;
};

class RecordDataset : public Dataset {
 public:
  RecordDataset(const ExampleSpec& spec, int64_t size, uint32_t crc32c, std::unique_ptr<RecordFormat> format,
                std::vector<Part> parts)
      : Dataset(spec, size, format->has_weights(), crc32c, format->has_labels()),
        format_(std::move(format)),
        parts_(std::move(parts)) {}

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    std::string record;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Part& part = *std::prev(std::upper_bound(parts_.begin(), parts_.end(), indices[i],
                                                     [](int64_t index, const Part& p) { return index < p.first; }));
      ASSIGN_OR_RETURN(const RecordIndex::Record place, part.index->Get(indices[i] - part.first));
      record.resize(place.size);
      absl::Status status = part.file->Read(place.offset, place.size, &record[0]);
      const ExampleSlot slot = SlotOf(spec(), static_cast<int64_t>(i), out);
      if (status.ok()) status = format_->Parse(record, slot);
      if (status.ok() && ParsedCrc32c(spec(), slot) != place.crc32c)
        status = absl::DataLossError("it holds other values");
      if (!status.ok()) {
        return absl::DataLossError(absl::StrCat(part.path, ": record ", indices[i] - part.first, " at byte ",
                                                place.offset, " is no longer what was indexed: ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<RecordFormat> format_;
  const std::vector<Part> parts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenRecordDataset(FileSystem* fs, std::unique_ptr<RecordFormat> format,
                                                           std::vector<RecordFile> files, const IndexOptions& options) {
  std::vector<Part> parts;
  int64_t size = 0;
  int64_t max_label = -1;
  uint32_t crc32c = StartOfDigest(format->spec(), format->has_weights());
  for (const RecordFile& file : files) {
    Part part;
    part.path = file.path;
    part.first = size;
    ASSIGN_OR_RETURN(part.file, fs->NewRandomAccessFile(file.path));
    ASSIGN_OR_RETURN(const bool gzipped, IsGzipped(*part.file));
    if (gzipped) {
      return absl::DataLossError(absl::StrCat(file.path, " is gzipped; records are read by their place, so gunzip it"));
    }
    ASSIGN_OR_RETURN(part.index, RecordIndex::Open(fs, *part.file, file, *format, options));
    size += part.index->size();
    max_label = std::max(max_label, part.index->summary().max_label);
    // The checksum is the same as if all records were in one file.
    crc32c = CombineCrc32c(crc32c, part.index->summary().crc32c,
                           static_cast<uint64_t>(part.index->size()) * sizeof(uint32_t));
    // Omits empty parts, which would hide the previous one from the search.
    if (part.index->size() > 0) parts.push_back(std::move(part));
  }
  if (size == 0) {
    return absl::DataLossError(absl::StrCat(files.empty() ? "" : files[0].path, ": holds no example that can be read"));
  }
  ExampleSpec spec = format->spec();
  if (spec.labels_dtype == v1::DT_INT32 && spec.classes == 0) spec.classes = max_label + 1;
  return std::make_unique<RecordDataset>(spec, size, crc32c, std::move(format), std::move(parts));
}

}  // namespace lockstep
