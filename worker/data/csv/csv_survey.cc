#include "lockstep/worker/data/csv/csv_survey.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/csv/csv_records.h"

namespace lockstep {
namespace {

using Csv = config::v1::InputConfig::Csv;

// The mean of the numbers so far, and the sum of squared differences from it (Welford 1962), in double precision.
struct Moments {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;

  void Add(double x) {
    ++count;
    const double before = x - mean;
    mean += before / static_cast<double>(count);
    squares += before * (x - mean);
  }
};

// The findings of a survey about one column.
struct Found {
  bool lists = false;
  Moments moments;
  std::set<std::string> categories;
  // The field of the last record that was parsed, as a number or as text.
  absl::optional<float> number;
  std::string text;
};

// The format that a survey uses to read records. Its examples are empty: Parse stores the values that the survey needs,
// and Count adds them to the findings.
class SurveyFormat : public CsvRecords {
 public:
  SurveyFormat(const std::vector<CsvColumn>& columns, char separator, bool lists_labels, std::vector<Found>* found)
      : CsvRecords(Spec(), /*has_weights=*/false, "", /*has_labels=*/true, separator),
        columns_(columns),
        found_(*found) {
    int64_t elements = 1;
    for (size_t i = 0; i < columns.size(); ++i) {
      const CsvColumn& column = columns[i];
      found_[i].lists =
          column.needs_categories() || (lists_labels && column.type == Csv::LABEL && column.category.empty());
      elements = std::max(elements, column.width());
    }
    features_.resize(static_cast<size_t>(elements));
  }

  absl::Status Parse(absl::string_view record, const ExampleSlot& out) const override {
    *out.features = 0;
    *out.label = 0;
    return ForEachCsvField(record, separator(), columns_.size(),
                           [&](size_t i, absl::string_view field) { return Take(columns_[i], field, &found_[i]); });
  }

  absl::Status Count() {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].needs_moments() && found_[i].number) found_[i].moments.Add(*found_[i].number);
      if (!found_[i].lists || !found_[i].categories.insert(found_[i].text).second) continue;
      bytes_ += found_[i].text.size();
      if (found_[i].categories.size() > kMaxListedCategories || bytes_ > kMaxPreparedBytes / 2) {
        return absl::InvalidArgumentError(absl::StrCat("csv column \"", columns_[i].name,
                                                       "\" has more categories than ", kMaxListedCategories,
                                                       ", or too long ones; use hash_buckets, or ", "another type"));
      }
    }
    return absl::OkStatus();
  }

 private:
  static ExampleSpec Spec() {
    ExampleSpec spec;
    spec.features_shape = Shape({1});
    return spec;
  }

  absl::Status Take(const CsvColumn& column, absl::string_view field, Found* found) const {
    if (found->lists) {
      ASSIGN_OR_RETURN(found->text, ParseCsvText(column, field));
      return absl::OkStatus();
    }
    if (column.needs_moments()) {
      ASSIGN_OR_RETURN(found->number, ParseCsvNumber(column, field));
      return absl::OkStatus();
    }
    // Checks the other fields, too, because a record with any damage is not in the training split.
    ExampleSlot slot;
    int32_t label = 0;
    float target = 0, weight = 0;
    slot.features = features_.data();
    slot.label = &label;
    slot.targets = &target;
    slot.weight = &weight;
    return ParseCsvField(column, field, slot);
  }

  const std::vector<CsvColumn>& columns_;
  std::vector<Found>& found_;
  mutable std::vector<float> features_;
  size_t bytes_ = 0;
};

absl::StatusOr<Csv::Prepared> Prepare(const CsvColumn& column, const std::string& key, const Found& found) {
  Csv::Prepared prepared;
  prepared.set_column(key);
  for (const std::string& category : found.categories) prepared.add_category(category);
  prepared.set_stddev(1);
  if (!column.needs_moments()) return prepared;
  const Moments& moments = found.moments;
  if (moments.count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("csv column \"", column.name, "\" has no number in the training split"));
  }
  const double stddev = std::sqrt(moments.squares / static_cast<double>(moments.count));
  prepared.set_mean(static_cast<float>(moments.mean));
  // If all numbers are equal, keeps the standard deviation at 1, so that standardized values are 0.
  const auto rounded = static_cast<float>(stddev);
  if (rounded > 0) prepared.set_stddev(rounded);
  if (std::isfinite(prepared.mean()) && std::isfinite(prepared.stddev())) return prepared;
  return absl::InvalidArgumentError(absl::StrCat("csv column \"", column.name, "\" has mean ", moments.mean,
                                                 " and standard deviation ", stddev, ", which are beyond float32"));
}

}  // namespace

std::vector<std::string> PreparedKeys(const std::vector<CsvColumn>& columns) {
  absl::flat_hash_map<std::string, int> times;
  for (const CsvColumn& column : columns) ++times[column.name];
  std::vector<std::string> keys;
  int64_t features = 0;
  for (const CsvColumn& column : columns) {
    const bool has_own_name = !column.name.empty() && times[column.name] == 1;
    keys.push_back(has_own_name ? column.name : column.type == Csv::LABEL ? "label" : absl::StrCat(features));
    features += column.is_feature();
  }
  return keys;
}

absl::StatusOr<std::vector<Csv::Prepared>> SurveyCsv(const std::vector<RecordFile>& files,
                                                     const std::vector<CsvColumn>& columns, char separator,
                                                     bool lists_labels, const CsvSurveyOptions& options) {
  std::vector<Found> found(columns.size());
  SurveyFormat format(columns, separator, lists_labels, &found);
  int64_t row = 0, counted = 0;
  for (const RecordFile& file : files) {
    RETURN_IF_ERROR(
        ScanRecords(*file.contents, file, format, options.scan, [&](const FoundRecord& record) -> absl::Status {
          const bool counts = record.is_example && (!options.counts || options.counts(row));
          ++row;
          if (!counts) return absl::OkStatus();
          ++counted;
          return format.Count();
        }).status());
  }
  if (counted == 0) return absl::InvalidArgumentError("the training split has no row");
  const std::vector<std::string> keys = PreparedKeys(columns);
  std::vector<Csv::Prepared> prepared;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!found[i].lists && !columns[i].needs_moments()) continue;
    ASSIGN_OR_RETURN(Csv::Prepared column, Prepare(columns[i], keys[i], found[i]));
    prepared.push_back(std::move(column));
  }
  return prepared;
}

absl::StatusOr<std::string> FirstCsvLabel(const std::vector<RecordFile>& files, const std::vector<CsvColumn>& columns,
                                          char separator) {
  constexpr size_t kHeadBytes = 1 << 20;
  for (const RecordFile& file : files) {
    std::string data(static_cast<size_t>(std::min<uint64_t>(kHeadBytes, file.contents->size() - file.begin)), '\0');
    RETURN_IF_ERROR(file.contents->Read(file.begin, data.size(), &data[0]));
    for (absl::string_view rest = data; !rest.empty();) {
      const absl::optional<RecordFormat::Piece> piece = CsvRecords::NextCsvPiece(rest, /*at_end=*/true, separator);
      if (!piece.has_value()) break;
      std::string label;
      const auto take = [&](size_t i, absl::string_view field) {
        if (columns[i].type == Csv::LABEL) label = std::string(absl::StripAsciiWhitespace(field));
        return absl::OkStatus();
      };
      if (piece->kind == RecordFormat::Kind::kRecord &&
          ForEachCsvField(rest.substr(piece->begin, piece->size), separator, columns.size(), take).ok() &&
          !label.empty()) {
        return label;
      }
      rest.remove_prefix(std::min(piece->next, rest.size()));
    }
  }
  return std::string();
}

}  // namespace lockstep
