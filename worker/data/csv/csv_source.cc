#include "lockstep/worker/data/csv/csv_source.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/nearest_name.h"
#include "lockstep/worker/data/csv/csv_fields.h"
#include "lockstep/worker/data/csv/csv_records.h"
#include "lockstep/worker/data/records/data_file.h"
#include "lockstep/worker/data/records/decimal.h"

namespace lockstep {
namespace {

using Column = config::v1::InputConfig::Csv::Column;
using Csv = config::v1::InputConfig::Csv;

constexpr size_t kMaxHeaderBytes = 4 << 20;
constexpr int64_t kMaxColumns = kMaxHeaderBytes;
// Maximum number of header names shown in an error, and of bytes of each.
constexpr size_t kShownNames = 6;
constexpr size_t kShownBytes = 40;
// Maximum number of header names that are compared with a missing name to find the most similar one.
constexpr size_t kComparedNames = 1000;

absl::Status CheckSeparator(absl::string_view separator) {
  if (separator.size() == 1 && !absl::StrContains("\"\r\n", separator)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("csv separator \"", separator, "\" must be one byte, no quote"));
}

// Returns the fields of the header line, and sets the start of `file` to the line after it.
absl::StatusOr<std::vector<std::string>> ReadHeader(char separator, RecordFile* file) {
  const RandomAccessFile& contents = *file->contents;
  std::string data(static_cast<size_t>(std::min<uint64_t>(contents.size(), kMaxHeaderBytes)), '\0');
  RETURN_IF_ERROR(contents.Read(0, data.size(), &data[0]));
  const absl::optional<RecordFormat::Piece> piece =
      data.empty() ? absl::nullopt : CsvRecords::NextCsvPiece(data, /*at_end=*/true, separator);
  if (!piece.has_value() || piece->kind != RecordFormat::Kind::kRecord) {
    return absl::DataLossError(
        absl::StrCat(file->path, ":1: no header line", contents.size() == 0 ? "; the file is empty" : ""));
  }
  std::vector<std::string> names;
  CsvFields fields(absl::string_view(data).substr(piece->begin, piece->size), separator);
  for (absl::string_view name; fields.Next(&name);) names.push_back(FromUtf8OrLatin1(absl::StripAsciiWhitespace(name)));
  file->begin = piece->next;
  file->first_line = 1 + std::count(data.begin(), data.begin() + static_cast<ptrdiff_t>(piece->next), '\n');
  return names;
}

// Returns the probable cause of an absent column: a different separator, a different spelling, or no header line.
std::string HintAtHeader(const CsvSource& source, const std::string& name) {
  const std::vector<std::string>& header = source.header;
  if (header.size() == 1) {
    for (const char other : {';', '\t', ',', '|'}) {
      if (other == source.separator || !absl::StrContains(header[0], other)) continue;
      return absl::StrCat("; the separator may be \"", absl::CHexEscape(std::string(1, other)), "\"");
    }
  }
  std::vector<std::string> names;
  bool has_number = false;
  for (const std::string& column : header) {
    double number = 0;
    has_number = has_number || ParseDecimal(column, &number);
    if (names.size() < kComparedNames && column.size() <= kShownBytes) names.push_back(column);
  }
  const std::string nearest = NearestName(name, names);
  if (!nearest.empty()) return absl::StrCat("; did you mean \"", nearest, "\"?");
  return has_number ? "; if the file has no header line, set no_header: true"
                    : "; the header line must be the first of the file";
}

// Returns an error about the columns. It begins with the location of the first file's header line.
absl::Status HeaderError(const CsvSource& source, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(source.files.front().path, ":1: ", text));
}

// Returns an error such as "data.csv:1: csv column "a" is not among the 3 of the header line: "x", "y", "z"", with the
// probable cause.
absl::Status NoSuchColumn(const CsvSource& source, const std::string& name) {
  std::vector<std::string> shown;
  for (const std::string& column : source.header) {
    if (shown.size() == kShownNames) break;
    shown.push_back(absl::StrCat("\"", absl::Utf8SafeCHexEscape(column.substr(0, kShownBytes)), "\""));
  }
  return HeaderError(source,
                     absl::StrCat("csv column \"", name, "\" is not among the ", source.header.size(),
                                  " of the header line: ", absl::StrJoin(shown, ", "),
                                  shown.size() < source.header.size() ? ", ..." : "", HintAtHeader(source, name)));
}

// Returns the number of columns in a range that begins at `index` in the header.
absl::StatusOr<size_t> RangeSize(const CsvSource& source, size_t index, const Column& column) {
  const std::vector<std::string>& header = source.header;
  if (column.last().empty()) return static_cast<size_t>(column.has_count() ? column.count() : 1);
  const auto last = std::find(header.begin() + static_cast<ptrdiff_t>(index), header.end(), column.last());
  if (last != header.end()) return static_cast<size_t>(last - header.begin()) - index + 1;
  return HeaderError(source, absl::StrCat("csv columns \"", column.name(), "\" to \"", column.last(),
                                          "\": there is no \"", column.last(), "\" behind the first of them"));
}

bool MayBeAbsent(const Column& config, bool labels_optional) {
  CsvColumn column;
  column.type = config.type();
  return labels_optional && (column.is_answer() || config.type() == Csv::ID);
}

absl::StatusOr<std::vector<CsvColumn>> MatchHeader(const CsvSource& source, const Csv& config, bool labels_optional) {
  const std::vector<std::string>& header = source.header;
  std::vector<CsvColumn> columns(header.size());
  for (size_t i = 0; i < header.size(); ++i) columns[i].name = header[i];
  for (const Column& column : config.column()) {
    const auto found = std::find(header.begin(), header.end(), column.name());
    if (found == header.end() && MayBeAbsent(column, labels_optional)) continue;
    if (found == header.end()) return NoSuchColumn(source, column.name());
    const auto index = static_cast<size_t>(found - header.begin());
    ASSIGN_OR_RETURN(const size_t size, RangeSize(source, index, column));
    if (size > header.size() - index) {
      return HeaderError(source, absl::StrCat("csv column \"", column.name(), "\" and the ", size - 1,
                                              " behind it: the header line has ", header.size() - index - 1));
    }
    ASSIGN_OR_RETURN(CsvColumn made, MakeCsvColumn(column));
    for (size_t i = index; i < index + size; ++i) {
      made.name = header[i];
      const bool repeated = std::count(header.begin(), header.end(), made.name) > 1;
      if (repeated || columns[i].type != Csv::SKIP) {
        return HeaderError(source, absl::StrCat("csv column \"", made.name, "\" is named twice",
                                                repeated ? " in the header line; rename one of them" : ""));
      }
      columns[i] = made;
    }
  }
  return columns;
}

// Returns the columns of files without a header line. If `without_answers`, omits label, targets and weight.
absl::StatusOr<std::vector<CsvColumn>> ColumnsInOrder(const Csv& config, bool without_answers) {
  int64_t count = 0;
  for (const Column& column : config.column()) {
    if (column.count() > kMaxColumns - count) {
      return absl::InvalidArgumentError(absl::StrCat("a csv column has the count ", column.count(), ", and ", count,
                                                     " are before it; at most ", kMaxColumns, " columns are read"));
    }
    count += std::max<int64_t>(1, column.count());
  }
  std::vector<CsvColumn> columns;
  for (const Column& column : config.column()) {
    ASSIGN_OR_RETURN(const CsvColumn made, MakeCsvColumn(column));
    if (without_answers && made.is_answer()) continue;
    columns.insert(columns.end(), static_cast<size_t>(column.has_count() ? column.count() : 1), made);
  }
  return columns;
}

}  // namespace

absl::StatusOr<CsvSource> OpenCsvSource(FileSystem* fs, const std::vector<std::string>& paths, const Csv& config) {
  const std::string separator = config.separator().empty() ? "," : config.separator();
  RETURN_IF_ERROR(CheckSeparator(separator));
  CsvSource source;
  source.separator = separator[0];
  for (const std::string& path : paths) {
    RecordFile file;
    file.path = path;
    ASSIGN_OR_RETURN(file.contents, OpenDataFile(fs, path, DataFileKind::kText));
    RecordFile behind_header = file;
    absl::StatusOr<std::vector<std::string>> names = ReadHeader(source.separator, &behind_header);
    if (config.no_header()) {
      if (names.ok() && source.files.empty()) source.header = *std::move(names);
    } else {
      RETURN_IF_ERROR(names.status());
      if (!source.files.empty() && *names != source.header) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": its header line is not that of ", source.files.front().path));
      }
      source.header = *std::move(names);
      file = std::move(behind_header);
    }
    source.files.push_back(std::move(file));
  }
  return source;
}

absl::StatusOr<std::vector<CsvColumn>> ColumnsOf(const CsvSource& source, const Csv& config, bool labels_optional) {
  if (!config.no_header()) return MatchHeader(source, config, labels_optional);
  ASSIGN_OR_RETURN(std::vector<CsvColumn> features, ColumnsInOrder(config, /*without_answers=*/true));
  if (labels_optional && source.header.size() == features.size()) return features;
  return ColumnsInOrder(config, /*without_answers=*/false);
}

}  // namespace lockstep
