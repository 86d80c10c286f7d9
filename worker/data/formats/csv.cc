#include "lockstep/worker/data/formats/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/formats/csv_fields.h"

namespace lockstep {
namespace {

using Column = config::v1::InputConfig::Csv::Column;
using Csv = config::v1::InputConfig::Csv;

// A quoted field may span lines, but a forgotten quote must not swallow the file.
constexpr size_t kMaxQuotedBytes = 1 << 20;
constexpr size_t kMaxHeaderBytes = 4 << 20;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// A column of the file.
struct Field {
  std::string name;
  Csv::Type type = Csv::SKIP;
  // Index among the features, or among the targets.
  int64_t place = 0;
  absl::flat_hash_map<std::string, int32_t> category;
};

struct Layout {
  std::vector<Field> fields;
  ExampleSpec spec;
  bool has_weights = false;
  bool has_labels = true;
};

absl::Status Damaged(const Field& field, absl::string_view text, absl::string_view expected) {
  return absl::DataLossError(
      absl::StrCat("column \"", field.name, "\" is \"", text.substr(0, 40), "\", expected ", expected));
}

absl::Status ParseNumber(const Field& field, absl::string_view text, float* out) {
  // from_chars is faster; SimpleAtof also accepts blanks around the number and a plus sign.
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), *out);
  const bool is_number =
      (result.ec == std::errc() && result.ptr == text.data() + text.size()) || absl::SimpleAtof(text, out);
  if (!is_number || !std::isfinite(*out)) return Damaged(field, text, "a finite number");
  return absl::OkStatus();
}

absl::Status ParseInteger(const Field& field, absl::string_view text, int32_t* out) {
  if (!absl::SimpleAtoi(text, out)) return Damaged(field, text, "an integer of 32 bits");
  return absl::OkStatus();
}

absl::Status ParseCategory(const Field& field, absl::string_view text, int32_t* out) {
  const auto found = field.category.find(text);
  if (found == field.category.end()) {
    return Damaged(field, text, absl::StrCat("one of its ", field.category.size(), " categories"));
  }
  *out = found->second;
  return absl::OkStatus();
}

absl::Status ParseField(const Field& field, absl::string_view text, const ExampleSlot& out) {
  int32_t id = 0;
  switch (field.type) {
    case Csv::FLOAT:
      return ParseNumber(field, text, &out.features[field.place]);
    case Csv::INT:
    case Csv::CATEGORY:
      RETURN_IF_ERROR(field.type == Csv::INT ? ParseInteger(field, text, &id) : ParseCategory(field, text, &id));
      if (out.ids != nullptr) {
        out.ids[field.place] = id;
      } else {
        out.features[field.place] = static_cast<float>(id);
      }
      return absl::OkStatus();
    case Csv::LABEL:
      if (!field.category.empty()) return ParseCategory(field, text, out.label);
      RETURN_IF_ERROR(ParseInteger(field, text, out.label));
      return *out.label >= 0 ? absl::OkStatus() : Damaged(field, text, "a class, 0 or greater");
    case Csv::TARGET:
      return ParseNumber(field, text, &out.targets[field.place]);
    case Csv::WEIGHT:
      RETURN_IF_ERROR(ParseNumber(field, text, out.weight));
      return *out.weight >= 0 ? absl::OkStatus() : Damaged(field, text, "a weight, 0 or greater");
    default:
      return absl::OkStatus();
  }
}

// Returns the length of the first record, without its line end, taking quotes into account; npos if a quoted field does
// not end.
size_t QuotedRecordEnd(absl::string_view data, char separator) {
  enum { kFieldStart, kPlain, kQuoted, kQuoteInQuoted } state = kFieldStart;
  for (size_t i = 0; i < data.size(); ++i) {
    const char c = data[i];
    if (state == kQuoted) {
      if (c == '"') state = kQuoteInQuoted;
    } else if (c == '\n') {
      return i;
    } else if (c == separator) {
      state = kFieldStart;
    } else if (c == '"' && state != kPlain) {
      // Opens a field, or is the second quote of a pair.
      state = kQuoted;
    } else {
      state = kPlain;
    }
  }
  return state == kQuoted ? absl::string_view::npos : data.size();
}

class CsvFormat : public RecordFormat {
 public:
  CsvFormat(Layout layout, char separator, std::string fingerprint)
      : RecordFormat(layout.spec, layout.has_weights, std::move(fingerprint), layout.has_labels),
        fields_(std::move(layout.fields)),
        separator_(separator) {}

  bool is_text() const override { return true; }

  absl::optional<Piece> NextPiece(absl::string_view data, bool at_end) const override {
    return NextCsvPiece(data, at_end, separator_);
  }

  // Returns a record, or its first line if a quoted field does not end.
  static absl::optional<Piece> NextCsvPiece(absl::string_view data, bool at_end, char separator) {
    absl::optional<Piece> line = NextLine(data, at_end);
    if (!line.has_value() || line->kind != Kind::kRecord) return line;
    if (!absl::StrContains(data.substr(0, line->size), '"')) return line;
    const size_t end = QuotedRecordEnd(data.substr(0, kMaxQuotedBytes), separator);
    const bool is_whole = end < std::min(data.size(), kMaxQuotedBytes) || (end == data.size() && at_end);
    if (!is_whole) {
      if (!at_end && data.size() < kMaxQuotedBytes) return absl::nullopt;
      line->kind = Kind::kDamaged;
      line->damage = "a quoted field does not end";
      return line;
    }
    line->size = end > 0 && data[end - 1] == '\r' ? end - 1 : end;
    line->next = std::min(end + 1, data.size());
    return line;
  }

  absl::Status Parse(absl::string_view record, const ExampleSlot& out) const override {
    CsvFields values(record, separator_);
    absl::string_view value;
    size_t count = 0;
    if (!has_labels()) *out.label = 0;
    for (; values.Next(&value); ++count) {
      if (count < fields_.size()) RETURN_IF_ERROR(ParseField(fields_[count], value, out));
    }
    if (values.damaged()) return absl::DataLossError(absl::StrCat("field ", count, " has a quote in a wrong place"));
    if (count != fields_.size()) {
      return absl::DataLossError(absl::StrCat(count, " fields, expected ", fields_.size()));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<Field> fields_;
  const char separator_;
};

absl::StatusOr<Field> MakeField(const Column& column) {
  Field field;
  field.name = column.name();
  field.type = column.type();
  for (const std::string& value : column.category()) {
    if (!field.category.insert({value, static_cast<int32_t>(field.category.size())}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("csv column \"", column.name(), "\" has the category \"", value, "\" twice"));
    }
  }
  const bool may_have = column.type() == Csv::CATEGORY || column.type() == Csv::LABEL;
  if (may_have ? column.type() == Csv::CATEGORY && field.category.empty() : !field.category.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("csv column \"", column.name(), "\" of type ",
                                                   Csv::Type_Name(column.type()), " has ", field.category.size(),
                                                   " categories"));
  }
  return field;
}

bool IsFeature(Csv::Type type) { return type == Csv::FLOAT || type == Csv::INT || type == Csv::CATEGORY; }
bool IsAnswer(Csv::Type type) { return type == Csv::LABEL || type == Csv::TARGET || type == Csv::WEIGHT; }

// Returns the number of columns of a range that begins at `index` of the header.
absl::StatusOr<size_t> RangeSize(const std::vector<std::string>& header, size_t index, const Column& column) {
  if (column.last().empty()) return static_cast<size_t>(column.has_count() ? column.count() : 1);
  const auto last = std::find(header.begin() + index, header.end(), column.last());
  if (last != header.end()) return last - header.begin() - index + 1;
  return absl::InvalidArgumentError(absl::StrCat("csv columns \"", column.name(), "\" to \"", column.last(),
                                                 "\": there is no \"", column.last(), "\" behind the first of them"));
}

// Returns the file's columns if it has a header line.
absl::StatusOr<std::vector<Field>> MatchHeader(const std::vector<std::string>& header, const Csv& config,
                                               bool labels_optional) {
  std::vector<Field> fields(header.size());
  for (size_t i = 0; i < header.size(); ++i) fields[i].name = header[i];
  for (const Column& column : config.column()) {
    const auto found = std::find(header.begin(), header.end(), column.name());
    if (found == header.end() && labels_optional && IsAnswer(column.type())) continue;
    if (found == header.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("csv column \"", column.name(), "\" is not among the ", header.size(), " of the header line"));
    }
    const size_t index = found - header.begin();
    ASSIGN_OR_RETURN(const size_t size, RangeSize(header, index, column));
    if (size > header.size() - index) {
      return absl::InvalidArgumentError(absl::StrCat("csv column \"", column.name(), "\" and the ", size - 1,
                                                     " behind it: the header line has ", header.size() - index - 1));
    }
    ASSIGN_OR_RETURN(Field field, MakeField(column));
    for (size_t i = index; i < index + size; ++i) {
      field.name = header[i];
      const bool repeated = std::count(header.begin(), header.end(), field.name) > 1;
      if (repeated || fields[i].type != Csv::SKIP) {
        return absl::InvalidArgumentError(absl::StrCat("csv column \"", field.name, "\" is named twice"));
      }
      fields[i] = field;
    }
  }
  return fields;
}

// Returns the file's columns if it has no header line. If `without_answers`, omits label, targets and weight.
absl::StatusOr<std::vector<Field>> FieldsInOrder(const Csv& config, bool without_answers) {
  std::vector<Field> fields;
  for (const Column& column : config.column()) {
    if (without_answers && IsAnswer(column.type())) continue;
    ASSIGN_OR_RETURN(const Field field, MakeField(column));
    fields.insert(fields.end(), static_cast<size_t>(column.has_count() ? column.count() : 1), field);
  }
  return fields;
}

absl::StatusOr<Layout> MakeLayout(std::vector<Field> fields, bool labels_optional) {
  Layout layout;
  int64_t features = 0, floats = 0, labels = 0, targets = 0, weights = 0;
  for (Field& field : fields) {
    floats += field.type == Csv::FLOAT;
    labels += field.type == Csv::LABEL;
    weights += field.type == Csv::WEIGHT;
    if (field.type == Csv::TARGET) field.place = targets++;
    if (IsFeature(field.type)) field.place = features++;
    if (field.type == Csv::LABEL) layout.spec.classes = static_cast<int64_t>(field.category.size());
  }
  layout.has_labels = !labels_optional || labels + targets > 0;
  if (features == 0 || weights > 1 || labels > 1 || (layout.has_labels && (labels == 0) == (targets == 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("csv has ", features, " feature, ", labels, " LABEL, ", targets, " TARGET and ", weights,
                     " WEIGHT columns; it needs features, one LABEL or else some TARGET, and at most one WEIGHT"));
  }
  if (floats == 0) layout.spec.features_dtype = v1::DT_INT32;
  layout.spec.features_shape = Shape({features});
  if (targets > 0) {
    layout.spec.labels_dtype = v1::DT_FLOAT;
    layout.spec.labels_shape = Shape({targets});
  }
  if (!layout.has_labels) layout.spec.classes = 1;
  layout.has_weights = weights > 0;
  layout.fields = std::move(fields);
  return layout;
}

CsvOrder OrderOf(const std::string& path, const Csv& config, const std::vector<Field>& fields) {
  Csv columns;
  *columns.mutable_column() = config.column();
  CsvOrder order = {path, columns.SerializeAsString()};
  for (const Field& field : fields) {
    if (IsFeature(field.type)) order.features.push_back(field.name);
    if (field.type == Csv::TARGET) order.targets.push_back(field.name);
  }
  return order;
}

// Changes the places of features and targets from their order in the file at `path` to their order in `order`.
absl::Status Reorder(const std::string& path, const Csv& config, const CsvOrder& order, std::vector<Field>* fields) {
  const CsvOrder own = OrderOf(path, config, *fields);
  ASSIGN_OR_RETURN(const std::vector<int64_t> features, PlacesLike(order, own, &CsvOrder::features, "feature"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> targets, PlacesLike(order, own, &CsvOrder::targets, "target"));
  for (Field& field : *fields) {
    if (IsFeature(field.type)) field.place = features[field.place];
    if (field.type == Csv::TARGET) field.place = targets[field.place];
  }
  return absl::OkStatus();
}

absl::Status CheckSeparator(absl::string_view separator) {
  if (separator.size() == 1 && !absl::StrContains("\"\r\n", separator)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("csv separator \"", separator, "\" must be one byte, no quote"));
}

std::string SeparatorOf(const Csv& config) { return config.separator().empty() ? "," : config.separator(); }

// Returns the fields of the first line, and sets where the second one starts.
absl::StatusOr<std::vector<std::string>> ReadHeader(const RandomAccessFile& contents, char separator,
                                                    RecordFile* file) {
  std::string data(static_cast<size_t>(std::min<uint64_t>(contents.size(), kMaxHeaderBytes)), '\0');
  RETURN_IF_ERROR(contents.Read(0, data.size(), &data[0]));
  absl::string_view text = data;
  if (absl::StartsWith(text, kByteOrderMark)) text.remove_prefix(3);
  const absl::optional<RecordFormat::Piece> piece =
      text.empty() ? absl::nullopt : CsvFormat::NextCsvPiece(text, /*at_end=*/true, separator);
  if (!piece.has_value() || piece->kind != RecordFormat::Kind::kRecord) {
    return absl::DataLossError(absl::StrCat(file->path, ":1: no header line"));
  }
  std::vector<std::string> names;
  CsvFields fields(text.substr(piece->begin, piece->size), separator);
  for (absl::string_view name; fields.Next(&name);) names.emplace_back(absl::StripAsciiWhitespace(name));
  file->begin = data.size() - text.size() + piece->next;
  file->first_line = 1 + std::count(text.begin(), text.begin() + piece->next, '\n');
  return names;
}

}  // namespace

absl::StatusOr<CsvFiles> OpenCsv(FileSystem* fs, const std::vector<std::string>& paths,
                                 const config::v1::InputConfig::Csv& config, bool labels_optional,
                                 const absl::optional<CsvOrder>& order) {
  const std::string separator = SeparatorOf(config);
  RETURN_IF_ERROR(CheckSeparator(separator));
  CsvFiles result;
  std::vector<std::string> header;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> contents, fs->NewRandomAccessFile(path));
    RecordFile file;
    file.path = path;
    if (!config.no_header()) {
      ASSIGN_OR_RETURN(std::vector<std::string> names, ReadHeader(*contents, separator[0], &file));
      if (!result.files.empty() && names != header) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": its header line is not that of ", result.files.front().path));
      }
      header = std::move(names);
    } else if (labels_optional && result.files.empty()) {
      RecordFile first_line = file;
      const auto first = ReadHeader(*contents, separator[0], &first_line);
      if (first.ok()) header = *first;
    }
    result.files.push_back(std::move(file));
  }
  std::vector<Field> fields;
  if (config.no_header()) {
    ASSIGN_OR_RETURN(fields, FieldsInOrder(config, /*without_answers=*/false));
    ASSIGN_OR_RETURN(std::vector<Field> features, FieldsInOrder(config, /*without_answers=*/true));
    if (labels_optional && header.size() == features.size()) fields = std::move(features);
  } else {
    ASSIGN_OR_RETURN(fields, MatchHeader(header, config, labels_optional));
  }
  ASSIGN_OR_RETURN(Layout layout, MakeLayout(std::move(fields), labels_optional));
  if (order) RETURN_IF_ERROR(Reorder(paths.front(), config, *order, &layout.fields));
  const std::string fingerprint =
      absl::StrCat(layout.has_labels ? "csv 1 " : "csv 1 without labels ", config.SerializeAsString());
  result.format = std::make_unique<CsvFormat>(std::move(layout), separator[0], fingerprint);
  return result;
}

absl::StatusOr<CsvOrder> ReadCsvOrder(FileSystem* fs, const std::string& path,
                                      const config::v1::InputConfig::Csv& config) {
  std::vector<Field> fields;
  if (config.no_header()) {
    ASSIGN_OR_RETURN(fields, FieldsInOrder(config, /*without_answers=*/false));
  } else {
    const std::string separator = SeparatorOf(config);
    RETURN_IF_ERROR(CheckSeparator(separator));
    ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> contents, fs->NewRandomAccessFile(path));
    RecordFile file;
    file.path = path;
    ASSIGN_OR_RETURN(const std::vector<std::string> header, ReadHeader(*contents, separator[0], &file));
    ASSIGN_OR_RETURN(fields, MatchHeader(header, config, /*labels_optional=*/false));
  }
  return OrderOf(path, config, fields);
}

}  // namespace lockstep
