#include "lockstep/cli/guess/csv_sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/worker/data/csv/csv_fields.h"
#include "lockstep/worker/data/csv/csv_records.h"
#include "lockstep/worker/data/records/data_file.h"
#include "lockstep/worker/data/records/decimal.h"

namespace lockstep {
namespace {

constexpr size_t kSampleBytes = 8 << 20;
constexpr size_t kSampleRows = 50000;
// Number of records used to guess the separator.
constexpr size_t kFormRows = 100;
// Maximum number of bytes of a field shown in an error.
constexpr size_t kShownBytes = 40;

using Rows = std::vector<std::vector<std::string>>;

// Returns at most `most` records from `data`, and sets `used` to the number of bytes that they occupy.
Rows Split(absl::string_view data, bool at_end, char separator, size_t most, size_t* used) {
  Rows rows;
  absl::string_view rest = data;
  while (!rest.empty() && rows.size() < most) {
    const absl::optional<RecordFormat::Piece> piece = CsvRecords::NextCsvPiece(rest, at_end, separator);
    if (!piece.has_value() || piece->next > rest.size()) break;
    if (piece->kind != RecordFormat::Kind::kBlank) {
      CsvFields fields(rest.substr(piece->begin, piece->size), separator);
      rows.emplace_back();
      for (absl::string_view field; fields.Next(&field);) {
        rows.back().push_back(FromUtf8OrLatin1(absl::StripAsciiWhitespace(field)));
      }
    }
    rest.remove_prefix(piece->next);
  }
  *used = data.size() - rest.size();
  return rows;
}

// Returns the most frequent number of fields, and sets `count` to the number of rows that have it.
size_t UsualWidth(const Rows& rows, size_t* count) {
  std::map<size_t, size_t> widths;
  for (const auto& row : rows) ++widths[row.size()];
  size_t width = 0;
  *count = 0;
  for (const auto& [candidate, times] : widths) {
    if (times >= *count) {
      width = candidate;
      *count = times;
    }
  }
  return width;
}

// Returns the separator that splits the most records into the same number of fields.
char GuessSeparator(absl::string_view data, bool at_end) {
  char best = ',';
  size_t best_count = 0, best_width = 1;
  for (const char separator : {',', ';', '\t', '|'}) {
    size_t used = 0, count = 0;
    const size_t width = UsualWidth(Split(data, at_end, separator, kFormRows, &used), &count);
    if (width < 2 || (best_width > 1 && (count < best_count || (count == best_count && width <= best_width)))) continue;
    best = separator;
    best_count = count;
    best_width = width;
  }
  return best;
}

// Returns true if all names differ. Ignores empty names, because pandas leaves the name of its index empty, and a line
// may end with a separator.
bool AllDiffer(const std::vector<std::string>& row) {
  std::set<std::string> names;
  return std::all_of(row.begin(), row.end(),
                     [&](const std::string& name) { return name.empty() || names.insert(name).second; });
}

// Returns true if a column has only numbers after its first row.
bool HasNumbersBelow(const Rows& rows, size_t width) {
  for (size_t column = 0; column < width; ++column) {
    int64_t numbers = 0, others = 0;
    for (size_t i = 1; i < rows.size(); ++i) {
      if (rows[i].size() != width || rows[i][column].empty()) continue;
      ++(IsNumber(rows[i][column]) ? numbers : others);
    }
    if (numbers > 0 && others == 0) return true;
  }
  return false;
}

// Returns true if the first row is a header line: it has no numbers, and either its names are all different, with none
// empty except possibly the first and the last, or one of its columns has only numbers below it.
bool HasHeader(const Rows& rows, size_t width) {
  const std::vector<std::string>& first = rows.front();
  if (std::any_of(first.begin(), first.end(), IsNumber)) return false;
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  const bool has_gap = width > 2 && std::any_of(first.begin() + 1, first.end() - 1, is_empty);
  return (AllDiffer(first) && !has_gap) || HasNumbersBelow(rows, width);
}

}  // namespace

bool IsNumber(const std::string& text) {
  float number = 0;
  return ParseDecimal(text, &number) && std::isfinite(number);
}

absl::StatusOr<CsvSample> SampleCsv(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, OpenDataFile(fs, path, DataFileKind::kText));
  std::string data(static_cast<size_t>(std::min<uint64_t>(file->size(), kSampleBytes)), '\0');
  RETURN_IF_ERROR(file->Read(0, data.size(), &data[0]));
  const bool at_end = data.size() == file->size();
  CsvSample sample;
  sample.separator = GuessSeparator(data, at_end);
  size_t used = 0, count = 0;
  Rows rows = Split(data, at_end, sample.separator, kSampleRows, &used);
  const size_t width = UsualWidth(rows, &count);
  if (width < 2 || rows.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no table: ", rows.size(), " lines, most with ", width,
                                                   " fields; it needs two columns and two rows"));
  }
  if (rows.front().size() != width) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":1: the first line has ", rows.front().size(), " fields, most have ", width, ": \"",
                     ToUtf8(rows.front().front(), kShownBytes),
                     "\"; the file must begin with its header line or its first row, with as many fields"));
  }
  sample.is_whole = used == file->size();
  sample.has_header = HasHeader(rows, width);
  sample.names.resize(width);
  if (sample.has_header) {
    sample.names = rows.front();
    rows.erase(rows.begin());
  }
  for (std::vector<std::string>& row : rows) {
    if (row.size() == width) {
      sample.rows.push_back(std::move(row));
    } else {
      ++sample.damaged;
    }
  }
  if (sample.rows.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has a header line and no row"));
  const auto sampled = static_cast<double>(sample.rows.size());
  sample.file_rows = sample.is_whole ? static_cast<int64_t>(sample.rows.size())
                                     : static_cast<int64_t>(sampled * static_cast<double>(file->size()) /
                                                            static_cast<double>(std::max<size_t>(used, 1)));
  return sample;
}

}  // namespace lockstep
