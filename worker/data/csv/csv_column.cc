#include "lockstep/worker/data/csv/csv_column.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/worker/data/records/data_file.h"
#include "lockstep/worker/data/records/decimal.h"

namespace lockstep {
namespace {

using Csv = config::v1::InputConfig::Csv;

// Maximum number of bytes of a field shown in an error.
constexpr size_t kShownBytes = 40;
constexpr absl::string_view kMissingNumbers[] = {"NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?"};

bool IsMissing(const CsvColumn& column, absl::string_view text) {
  if (text.empty()) return true;
  const bool is_text =
      column.type == Csv::CATEGORY || (column.type == Csv::LABEL && !column.category.empty()) || column.type == Csv::ID;
  // In a text column, strings such as "NA" may be actual values.
  return !is_text &&
         std::find(std::begin(kMissingNumbers), std::end(kMissingNumbers), text) != std::end(kMissingNumbers);
}

std::string Shown(absl::string_view text) {
  if (IsUtf8(text)) return absl::StrCat("\"", ToUtf8(text, kShownBytes), "\"");
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShownBytes)),
                      "\", which is not UTF-8 and is read as Latin-1");
}

// Returns true for "0,5" and "1,234.5".
bool IsNumberWithCommas(absl::string_view text) {
  std::string without(text.substr(0, kShownBytes));
  const auto end = std::remove(without.begin(), without.end(), ',');
  if (end == without.end()) return false;
  without.erase(end, without.end());
  float number = 0;
  return ParseDecimal(without, &number);
}

absl::Status Damaged(const CsvColumn& column, absl::string_view text, absl::string_view expected) {
  if (IsMissing(column, text) && column.missing == Csv::Missing::KIND_NOT_SET) {
    return absl::DataLossError(absl::StrCat(
        "column \"", column.name, "\" is ", text.empty() ? "empty" : absl::StrCat("\"", text, "\""), ", expected ",
        expected, "; a column may have missing { default: \"...\" }", column.is_feature() ? ", mean: true" : "",
        " or skip: true, and on_damage: SKIP_AND_COUNT leaves out damaged lines"));
  }
  return absl::DataLossError(absl::StrCat(
      "column \"", column.name, "\" is ", Shown(text), ", expected ", expected,
      IsNumberWithCommas(text) ? "; it has a comma: write a point for decimals, nothing between thousands" : ""));
}

absl::Status ParseNumber(const CsvColumn& column, absl::string_view text, float* out) {
  // from_chars is faster; ParseDecimal also accepts a plus sign.
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), *out);
  const bool is_number =
      (result.ec == std::errc() && result.ptr == text.data() + text.size()) || ParseDecimal(text, out);
  if (!is_number || !std::isfinite(*out)) return Damaged(column, text, "a finite number");
  return absl::OkStatus();
}

absl::Status ParseInteger(const CsvColumn& column, absl::string_view text, int32_t* out) {
  if (!absl::SimpleAtoi(text, out)) return Damaged(column, text, "an integer of 32 bits");
  return absl::OkStatus();
}

absl::Status ParseClass(const CsvColumn& column, absl::string_view text, int32_t* out) {
  // Programs that cannot represent a missing integer write a column of classes as 0.0, 1.0.
  double number = 0;
  if (!absl::SimpleAtoi(text, out)) {
    if (!ParseDecimal(text, &number) || number != std::floor(number) ||
        std::abs(number) > std::numeric_limits<int32_t>::max()) {
      return Damaged(column, text, "a class, an integer of 32 bits; if labels are words, list them as `category`");
    }
    *out = static_cast<int32_t>(number);
  }
  return *out >= 0 ? absl::OkStatus()
                   : Damaged(column, text,
                             "a class, 0 or greater; if its classes are other numbers, list them as `category`");
}

absl::Status ParseCategory(const CsvColumn& column, absl::string_view text, int32_t* out) {
  if (column.hash_buckets > 0) {
    const uint64_t hash = IsUtf8(text) ? StableHash(text) : StableHash(FromUtf8OrLatin1(text));
    *out = static_cast<int32_t>(hash % static_cast<uint64_t>(column.hash_buckets));
    return absl::OkStatus();
  }
  auto found = column.category.find(text);
  if (found == column.category.end() && !IsUtf8(text)) found = column.category.find(FromUtf8OrLatin1(text));
  if (found == column.category.end()) {
    return Damaged(column, text, absl::StrCat("one of its ", column.category.size(), " categories"));
  }
  *out = found->second;
  return absl::OkStatus();
}

// Returns the text to use for a field, or nullopt if the column's mean must be used instead.
absl::StatusOr<absl::optional<absl::string_view>> TextOf(const CsvColumn& column, absl::string_view field) {
  const absl::string_view text = absl::StripAsciiWhitespace(field);
  if (column.missing == Csv::Missing::KIND_NOT_SET || !IsMissing(column, text)) return absl::make_optional(text);
  switch (column.missing) {
    case Csv::Missing::kSkip:
      return LeftOut();
    case Csv::Missing::kMean:
      return absl::optional<absl::string_view>();
    default:
      return absl::make_optional<absl::string_view>(column.default_text);
  }
}

absl::Status StoreNumber(const CsvColumn& column, float number, const ExampleSlot& out) {
  out.features[column.place] = column.standardize ? (number - column.mean) / column.stddev : number;
  if (std::isfinite(out.features[column.place])) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("column \"", column.name, "\" is ", number,
                                          ", which is not finite when it is ", "standardized by mean ", column.mean,
                                          " and standard deviation ", column.stddev));
}

void StoreIndex(const CsvColumn& column, int32_t index, const ExampleSlot& out) {
  if (column.one_hot) {
    std::fill_n(out.features + column.place, column.width(), 0.0f);
    out.features[column.place + index] = 1;
  } else if (out.ids != nullptr) {
    out.ids[column.place] = index;
  } else {
    out.features[column.place] = static_cast<float>(index);
  }
}

}  // namespace

int64_t CsvColumn::width() const {
  if (!one_hot) return 1;
  return hash_buckets > 0 ? hash_buckets : static_cast<int64_t>(category.size());
}

absl::Status SetCategories(absl::Span<const std::string> categories, CsvColumn* column) {
  for (const std::string& value : categories) {
    const std::string text(absl::StripAsciiWhitespace(value));
    if (!column->category.insert({text, static_cast<int32_t>(column->category.size())}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("csv column \"", column->name, "\" has the category \"", text, "\" twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CsvColumn> MakeCsvColumn(const Csv::Column& config) {
  CsvColumn column;
  column.name = config.name();
  column.type = config.type();
  column.hash_buckets = config.hash_buckets();
  column.one_hot = config.one_hot();
  column.standardize = config.standardize();
  column.missing = config.missing().kind_case();
  const bool may_be_listed = column.type == Csv::CATEGORY || column.type == Csv::LABEL;
  if (!may_be_listed && !config.category().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("csv column \"", config.name(), "\" of type ",
                                                   Csv::Type_Name(config.type()), " has ", config.category_size(),
                                                   " categories"));
  }
  column.default_text = std::string(absl::StripAsciiWhitespace(config.missing().default_()));
  const std::vector<std::string> categories(config.category().begin(), config.category().end());
  RETURN_IF_ERROR(SetCategories(categories, &column));
  return column;
}

absl::StatusOr<absl::optional<float>> ParseCsvNumber(const CsvColumn& column, absl::string_view field) {
  ASSIGN_OR_RETURN(const absl::optional<absl::string_view> text, TextOf(column, field));
  if (!text) return absl::optional<float>();
  float number = 0;
  if (column.type == Csv::INT) {
    int32_t integer = 0;
    RETURN_IF_ERROR(ParseInteger(column, *text, &integer));
    number = static_cast<float>(integer);
  } else {
    RETURN_IF_ERROR(ParseNumber(column, *text, &number));
  }
  return absl::make_optional(number);
}

absl::StatusOr<std::string> ParseCsvText(const CsvColumn& column, absl::string_view field) {
  ASSIGN_OR_RETURN(const absl::optional<absl::string_view> text, TextOf(column, field));
  if (!text || text->empty()) return Damaged(column, "", "a word");
  return FromUtf8OrLatin1(*text);
}

absl::Status ParseCsvField(const CsvColumn& column, absl::string_view field, const ExampleSlot& out) {
  if (column.type == Csv::SKIP || column.type == Csv::ID) return absl::OkStatus();
  if (column.type == Csv::FLOAT || (column.type == Csv::INT && out.ids == nullptr)) {
    ASSIGN_OR_RETURN(const absl::optional<float> number, ParseCsvNumber(column, field));
    return StoreNumber(column, number.value_or(column.mean), out);
  }
  ASSIGN_OR_RETURN(const absl::optional<absl::string_view> text, TextOf(column, field));
  int32_t index = 0;
  switch (column.type) {
    case Csv::INT:
      return ParseInteger(column, *text, &out.ids[column.place]);
    case Csv::CATEGORY:
      RETURN_IF_ERROR(ParseCategory(column, *text, &index));
      StoreIndex(column, index, out);
      return absl::OkStatus();
    case Csv::LABEL:
      return column.category.empty() ? ParseClass(column, *text, out.label) : ParseCategory(column, *text, out.label);
    case Csv::TARGET:
      return ParseNumber(column, *text, &out.targets[column.place]);
    case Csv::WEIGHT:
      RETURN_IF_ERROR(ParseNumber(column, *text, out.weight));
      return *out.weight >= 0 ? absl::OkStatus() : Damaged(column, *text, "a weight, 0 or greater");
    default:
      return absl::OkStatus();
  }
}

}  // namespace lockstep
