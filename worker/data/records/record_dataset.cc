#include "lockstep/worker/data/records/record_dataset.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/worker/data/records/data_file.h"

namespace lockstep {
namespace {

struct Part {
  std::string path;
  std::shared_ptr<const RandomAccessFile> file;
  std::unique_ptr<RecordIndex> index;
  // Indices of the part's first example and first row in the dataset.
  int64_t first = 0;
  int64_t first_row = 0;
};

// Returns the part with the greatest `first` that is at most `i`.
const Part& PartOf(const std::vector<Part>& parts, int64_t Part::*first, int64_t i) {
  return *std::prev(std::upper_bound(parts.begin(), parts.end(), i,
                                     [first](int64_t i, const Part& part) { return i < part.*first; }));
}

class RecordDataset : public Dataset {
 public:
  RecordDataset(const ExampleSpec& spec, int64_t size, uint32_t crc32c, std::unique_ptr<RecordFormat> format,
                std::vector<Part> parts)
      : Dataset(spec, size, format->has_weights(), crc32c, format->has_labels()),
        format_(std::move(format)),
        parts_(std::move(parts)) {}

  int64_t rows() const override { return parts_.back().first_row + parts_.back().index->rows(); }

  Row RowAt(int64_t i) const override {
    const Part& part = PartOf(parts_, &Part::first_row, i);
    const int64_t example = part.index->ExampleOf(i - part.first_row);
    return {i, example < 0 ? -1 : part.first + example};
  }

  void AddPreparation(v1::DataDigest* digest) const override { format_->AddPreparation(digest); }

  std::string id_name() const override { return format_->id_name(); }

  absl::StatusOr<std::string> ReadId(int64_t i) const override {
    const Part& part = PartOf(parts_, &Part::first_row, i);
    ASSIGN_OR_RETURN(const RecordIndex::Record place, part.index->Get(i - part.first_row));
    std::string record(place.size, '\0');
    RETURN_IF_ERROR(part.file->Read(place.offset, record.size(), &record[0]));
    return format_->IdOf(record);
  }

 private:
  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    std::string record;
    for (size_t i = 0; i < indices.size(); ++i) {
      const Part& part = PartOf(parts_, &Part::first, indices[i]);
      const int64_t row = part.index->RowOf(indices[i] - part.first);
      ASSIGN_OR_RETURN(const RecordIndex::Record place, part.index->Get(row));
      record.resize(place.size);
      absl::Status status = part.file->Read(place.offset, place.size, &record[0]);
      const ExampleSlot slot = SlotOf(spec(), static_cast<int64_t>(i), out);
      if (status.ok()) status = format_->Parse(record, slot);
      if (status.ok() && ParsedCrc32c(spec(), slot) != place.crc32c)
        status = absl::DataLossError("it holds other values");
      if (!status.ok()) {
        return absl::DataLossError(absl::StrCat(part.path, ": record ", row, " at byte ", place.offset,
                                                " is no longer what was indexed: ", status.message()));
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
  int64_t size = 0, rows = 0;
  int64_t max_label = 0;
  uint32_t crc32c = StartOfDigest(format->spec(), format->has_weights());
  for (const RecordFile& file : files) {
    Part part;
    part.path = file.path;
    part.first = size;
    part.first_row = rows;
    part.file = file.contents;
    if (part.file == nullptr) {
      const DataFileKind kind = format->is_text() ? DataFileKind::kText : DataFileKind::kTfRecord;
      ASSIGN_OR_RETURN(part.file, OpenDataFile(fs, file.path, kind));
    }
    ASSIGN_OR_RETURN(part.index, RecordIndex::Open(fs, *part.file, file, *format, options));
    size += part.index->size();
    rows += part.index->rows();
    max_label = std::max(max_label, part.index->summary().max_label);
    // The checksum is the same as if all records were in one file.
    crc32c = CombineCrc32c(crc32c, part.index->summary().crc32c,
                           static_cast<uint64_t>(part.index->size()) * sizeof(uint32_t));
    // Omits parts without rows, which would hide the previous part from the search.
    if (part.index->rows() > 0) parts.push_back(std::move(part));
  }
  if (size == 0) {
    return absl::DataLossError(absl::StrCat(files.empty() ? "" : files[0].path, ": holds no example that can be read"));
  }
  ExampleSpec spec = format->spec();
  if (spec.labels_dtype == v1::DT_INT32 && spec.classes == 0) spec.classes = max_label + 1;
  return std::make_unique<RecordDataset>(spec, size, crc32c, std::move(format), std::move(parts));
}

}  // namespace lockstep
