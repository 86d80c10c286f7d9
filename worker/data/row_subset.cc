#include "lockstep/worker/data/row_subset.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {

class RowSubset : public Dataset {
 public:
  RowSubset(std::unique_ptr<Dataset> dataset, std::vector<int64_t> examples, std::vector<int64_t> rows, uint32_t crc32c)
      : Dataset(dataset->spec(), static_cast<int64_t>(examples.size()), dataset->has_weights(), crc32c,
                dataset->has_labels()),
        dataset_(std::move(dataset)),
        examples_(std::move(examples)),
        rows_(std::move(rows)) {}

 private:
  int64_t rows() const override { return static_cast<int64_t>(rows_.empty() ? examples_.size() : rows_.size()); }

  Row RowAt(int64_t i) const override {
    Row row = dataset_->RowAt(Original(i));
    if (row.example >= 0) {
      row.example = std::lower_bound(examples_.begin(), examples_.end(), row.example) - examples_.begin();
    }
    return row;
  }

  std::string id_name() const override { return dataset_->id_name(); }
  absl::StatusOr<std::string> ReadId(int64_t i) const override { return dataset_->ReadId(Original(i)); }
  void AddPreparation(v1::DataDigest* digest) const override { dataset_->AddPreparation(digest); }

  absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const override {
    std::vector<int64_t> originals;
    for (const int64_t index : indices) originals.push_back(examples_[static_cast<size_t>(index)]);
    return dataset_->Read(originals, out);
  }

  int64_t Original(int64_t row) const { return (rows_.empty() ? examples_ : rows_)[static_cast<size_t>(row)]; }

  const std::unique_ptr<Dataset> dataset_;
  const std::vector<int64_t> examples_;
  // The numbers of the selected rows if some rows of dataset_ hold no example. Empty if each row holds an example;
  // examples_ then has the row numbers.
  const std::vector<int64_t> rows_;
};

}  // namespace

bool IsTestRow(uint64_t seed, int64_t row, double fraction) {
  constexpr double kNumbers = 4294967296.0;
  const Philox philox(seed, StableHash("test_fraction"));
  return philox.At(static_cast<uint64_t>(row))[0] < fraction * kNumbers;
}

absl::StatusOr<std::unique_ptr<Dataset>> SelectRows(std::unique_ptr<Dataset> dataset,
                                                    const std::function<bool(int64_t row)>& selects) {
  std::vector<int64_t> examples, rows;
  const bool all_are_examples = dataset->rows() == dataset->size();
  uint32_t crc32c = dataset->digest().crc32c();
  for (int64_t i = 0; i < dataset->rows(); ++i) {
    const Dataset::Row row = dataset->RowAt(i);
    if (!selects(row.number)) continue;
    if (!all_are_examples) rows.push_back(i);
    if (row.example < 0) continue;
    examples.push_back(row.example);
    std::string number;
    AppendLittleEndian<uint64_t>(&number, static_cast<uint64_t>(row.number));
    crc32c = ExtendCrc32c(crc32c, number);
  }
  if (examples.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.test_fraction leaves none of the ", dataset->size(), " examples for a split"));
  }
  return std::make_unique<RowSubset>(std::move(dataset), std::move(examples), std::move(rows), crc32c);
}

}  // namespace lockstep
