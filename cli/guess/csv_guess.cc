#include "lockstep/cli/guess/csv_guess.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

using Csv = config::v1::InputConfig::Csv;

// Maximum numbers of classes, of classes that are numbers, of listed categories, and of distinct texts to hash.
constexpr size_t kMaxClasses = 100;
constexpr size_t kMaxNumericClasses = 20;
constexpr size_t kMaxListed = 50;
constexpr size_t kMaxHashed = 2000;
// Maximum number of columns shown in an error.
constexpr size_t kShownColumns = 6;
// Common names of the column to predict, and texts that represent a missing number (ParseCsvField).
constexpr absl::string_view kLabelNames[] = {"label",   "labels",   "class",     "target",   "y",
                                             "outcome", "response", "diagnosis", "survived", "species"};
constexpr absl::string_view kMissing[] = {"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?"};
// The category for missing texts.
constexpr char kMissingCategory[] = "missing";
constexpr char kWriteNumbers[] = "; write a point for decimals, and nothing between thousands";

constexpr int64_t kBatch = 32;
constexpr int64_t kEpochs = 30;
constexpr int64_t kMaxSteps = 20000;
constexpr double kTestFraction = 0.2;

// The values in a column of the sample.
struct Contents {
  std::map<std::string, int64_t> values;
  int64_t missing = 0;
  bool are_numbers = true;
  bool are_integers = true;
  // True if all texts are numbers once their commas are removed.
  bool have_commas = false;
};

std::string WithoutCommas(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return text;
}

Contents ContentsOf(const CsvSample& sample, size_t column) {
  Contents contents;
  for (const auto& row : sample.rows) {
    const std::string& text = row[column];
    if (std::find(std::begin(kMissing), std::end(kMissing), text) != std::end(kMissing)) {
      ++contents.missing;
      continue;
    }
    ++contents.values[text];
    int32_t integer = 0;
    contents.are_numbers = contents.are_numbers && IsNumber(text);
    contents.are_integers = contents.are_integers && absl::SimpleAtoi(text, &integer);
  }
  if (contents.are_numbers) return contents;
  contents.have_commas = std::all_of(contents.values.begin(), contents.values.end(),
                                     [](const auto& value) { return IsNumber(WithoutCommas(value.first)); });
  // In a column of words, a text such as "NA" is a word and not a missing number.
  for (const auto& row : sample.rows) {
    const std::string& text = row[column];
    if (text.empty() || std::find(std::begin(kMissing), std::end(kMissing), text) == std::end(kMissing)) continue;
    --contents.missing;
    ++contents.values[text];
  }
  return contents;
}

// Returns true if another column has the same name in the header line.
bool IsAmbiguous(const CsvSample& sample, size_t column) {
  const std::string& name = sample.names[column];
  return sample.has_header && !name.empty() && std::count(sample.names.begin(), sample.names.end(), name) > 1;
}

std::string NameOf(const CsvSample& sample, size_t column) {
  return sample.names[column].empty() ? absl::StrCat("column ", column) : sample.names[column];
}

absl::StatusOr<size_t> FindLabel(const CsvSample& sample, absl::string_view label) {
  const std::vector<std::string>& names = sample.names;
  if (!label.empty()) {
    const auto found = std::find(names.begin(), names.end(), label);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    size_t number = 0;
    if (!sample.has_header && absl::SimpleAtoi(label, &number) && number < names.size()) return number;
    return absl::InvalidArgumentError(
        absl::StrCat("--label=", label, " is not a column; there are ",
                     sample.has_header ? absl::StrJoin(names, ", ")
                                       : absl::StrCat("0 to ", names.size() - 1, ", without a header line")));
  }
  for (size_t i = names.size(); i-- > 0;) {
    const std::string name = absl::AsciiStrToLower(names[i]);
    if (std::find(std::begin(kLabelNames), std::end(kLabelNames), name) != std::end(kLabelNames)) return i;
  }
  // A separator at the end of each line creates an empty last column.
  size_t last = names.size() - 1;
  while (last > 0 && ContentsOf(sample, last).values.empty()) --last;
  return last;
}

// Returns the values in class order: numbers by value, words in byte order.
std::vector<std::string> SortedValues(const Contents& contents) {
  std::vector<std::string> values;
  for (const auto& [value, count] : contents.values) values.push_back(value);
  if (contents.are_numbers) {
    std::stable_sort(values.begin(), values.end(),
                     [](const std::string& a, const std::string& b) { return atof(a.c_str()) < atof(b.c_str()); });
  }
  return values;
}

bool AreClassesFromZero(const Contents& contents) {
  const std::vector<std::string> values = SortedValues(contents);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != absl::StrCat(i)) return false;
  }
  return true;
}

absl::StatusOr<ColumnGuess> GuessLabel(const CsvSample& sample, size_t index, int64_t* classes) {
  const Contents contents = ContentsOf(sample, index);
  if (IsAmbiguous(sample, index)) {
    return absl::InvalidArgumentError(absl::StrCat("the header line names ", NameOf(sample, index), " twice"));
  }
  if (contents.have_commas) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(sample, index), " has numbers with commas", kWriteNumbers));
  }
  ColumnGuess guess;
  guess.column.set_name(sample.names[index]);
  if (contents.missing > 0) guess.column.mutable_missing()->set_skip(true);
  const std::string rows_left_out =
      contents.missing > 0 ? absl::StrCat("; rows without it, ", contents.missing, " here, are left out") : "";
  const size_t values = contents.values.size();
  if (values < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(sample, index), " has ", values, " value; name the column to predict with --label"));
  }
  if (contents.are_numbers && (!contents.are_integers || values > kMaxNumericClasses)) {
    guess.column.set_type(Csv::TARGET);
    guess.reason = absl::StrCat("the number to predict", rows_left_out);
    *classes = 0;
    return guess;
  }
  if (values > kMaxClasses) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(sample, index), " has ", values,
                                                   " different words; name the column to predict with --label"));
  }
  guess.column.set_type(Csv::LABEL);
  *classes = static_cast<int64_t>(values);
  if (!AreClassesFromZero(contents)) {
    for (const std::string& value : SortedValues(contents)) guess.column.add_category(value);
  }
  guess.reason = absl::StrCat("the class to predict, one of ", values, rows_left_out);
  return guess;
}

// Sets the mean and the deviation of a column of numbers.
void MeasureTarget(const Contents& contents, CsvGuess* guess) {
  double sum = 0, squares = 0, count = 0;
  for (const auto& [value, times] : contents.values) {
    sum += atof(value.c_str()) * static_cast<double>(times);
    count += static_cast<double>(times);
  }
  guess->target_mean = sum / count;
  for (const auto& [value, times] : contents.values) {
    squares += std::pow(atof(value.c_str()) - guess->target_mean, 2) * static_cast<double>(times);
  }
  if (squares > 0) guess->target_deviation = std::sqrt(squares / count);
}

bool IsNamedAsId(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return lower.empty() || lower == "id" || lower == "index" || lower == "uuid" || absl::EndsWith(lower, "_id") ||
         absl::EndsWith(lower, " id") || absl::StartsWith(lower, "unnamed") || absl::EndsWith(name, "Id") ||
         absl::EndsWith(name, "ID");
}

ColumnGuess GuessNumber(const Contents& contents, ColumnGuess guess, bool is_whole) {
  guess.column.set_type(Csv::FLOAT);
  guess.column.set_standardize(true);
  guess.reason = "a number, standardized";
  if (contents.missing > 0 || !is_whole) guess.column.mutable_missing()->set_mean(true);
  if (contents.missing > 0) absl::StrAppend(&guess.reason, "; ", contents.missing, " are missing: the mean");
  return guess;
}

ColumnGuess GuessText(const Contents& contents, ColumnGuess guess, bool is_whole) {
  const size_t values = contents.values.size();
  guess.column.set_type(Csv::CATEGORY);
  guess.column.set_one_hot(true);
  if (values <= kMaxListed && is_whole) {
    for (const auto& [value, count] : contents.values) guess.column.add_category(value);
    guess.reason = absl::StrCat("a category, one of ", values);
    if (contents.missing > 0 && contents.values.count(kMissingCategory) == 0)
      guess.column.add_category(kMissingCategory);
  } else {
    int64_t buckets = 16;
    while (buckets < 2 * static_cast<int64_t>(values)) buckets *= 2;
    guess.column.set_hash_buckets(std::min<int64_t>(buckets, 1024));
    guess.reason = absl::StrCat("a text with ", values, " values, hashed");
  }
  if (contents.missing > 0 || !is_whole) guess.column.mutable_missing()->set_default_(kMissingCategory);
  if (contents.missing > 0) absl::StrAppend(&guess.reason, "; ", contents.missing, " are missing");
  return guess;
}

ColumnGuess GuessFeature(const CsvSample& sample, size_t index, bool* has_id) {
  const Contents contents = ContentsOf(sample, index);
  ColumnGuess guess;
  guess.column.set_name(sample.names[index]);
  guess.column.set_type(Csv::SKIP);
  const auto rows = static_cast<int64_t>(sample.rows.size());
  const auto values = static_cast<int64_t>(contents.values.size());
  const bool all_differ = values == rows && rows > 1;
  const bool may_identify = all_differ && (contents.are_integers || !contents.are_numbers);
  if (may_identify && IsNamedAsId(sample.names[index]) && sample.has_header) {
    guess.reason = "left out: it identifies rows";
    // A nameless column cannot be configured by name.
    if (*has_id || sample.names[index].empty()) return guess;
    *has_id = true;
    guess.column.set_type(Csv::ID);
    guess.reason = "identifies rows: predict writes it, no feature";
    return guess;
  }
  if (sample.has_header && (sample.names[index].empty() || IsAmbiguous(sample, index))) {
    guess.reason = sample.names[index].empty() ? "left out: it has no name" : "left out: its name is there twice";
    return guess;
  }
  if (contents.have_commas) {
    guess.reason = absl::StrCat("left out: its numbers have commas", kWriteNumbers);
    return guess;
  }
  if (values == 0 || (values == 1 && contents.missing == 0)) {
    guess.reason = values == 0 ? "left out: it is empty" : "left out: it has one value";
    return guess;
  }
  if (contents.are_numbers) return GuessNumber(contents, std::move(guess), sample.is_whole);
  // Texts that rarely repeat say little about other rows.
  if (contents.values.size() > kMaxHashed || 2 * values > rows - contents.missing) {
    if (values > static_cast<int64_t>(kMaxListed) || all_differ) {
      guess.reason = absl::StrCat("left out: a text with ", values, " values in ", rows, " rows");
      return guess;
    }
  }
  return GuessText(contents, std::move(guess), sample.is_whole);
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\""); }

std::string ColumnText(const Csv::Column& column, bool has_header) {
  std::string text = "column {";
  if (has_header) absl::StrAppend(&text, " name: ", Quoted(column.name()));
  absl::StrAppend(&text, " type: ", Csv::Type_Name(column.type()));
  if (column.category_size() > 0) {
    absl::StrAppend(&text, " category: [",
                    absl::StrJoin(column.category(), ", ",
                                  [](std::string* out, const std::string& value) { out->append(Quoted(value)); }),
                    "]");
  }
  if (column.hash_buckets() > 0) absl::StrAppend(&text, " hash_buckets: ", column.hash_buckets());
  if (column.one_hot()) absl::StrAppend(&text, " one_hot: true");
  if (column.standardize()) absl::StrAppend(&text, " standardize: true");
  if (column.missing().mean()) absl::StrAppend(&text, " missing { mean: true }");
  if (column.missing().skip()) absl::StrAppend(&text, " missing { skip: true }");
  if (column.missing().kind_case() == Csv::Missing::kDefault) {
    absl::StrAppend(&text, " missing { default: ", Quoted(column.missing().default_()), " }");
  }
  return absl::StrCat(text, " }");
}

}  // namespace

absl::StatusOr<CsvGuess> GuessColumns(const CsvSample& sample, absl::string_view label) {
  CsvGuess guess;
  ASSIGN_OR_RETURN(guess.label, FindLabel(sample, label));
  bool has_id = false;
  int features = 0;
  for (size_t i = 0; i < sample.names.size(); ++i) {
    if (i == guess.label) {
      ASSIGN_OR_RETURN(ColumnGuess column, GuessLabel(sample, i, &guess.classes));
      if (guess.classes == 0) MeasureTarget(ContentsOf(sample, i), &guess);
      guess.columns.push_back(std::move(column));
    } else {
      guess.columns.push_back(GuessFeature(sample, i, &has_id));
      const Csv::Type type = guess.columns.back().column.type();
      features += type != Csv::SKIP && type != Csv::ID;
    }
  }
  if (features > 0) return guess;
  std::string reasons;
  for (size_t i = 0; i < std::min(kShownColumns, guess.columns.size()); ++i) {
    if (i != guess.label) absl::StrAppend(&reasons, "; ", NameOf(sample, i), ": ", guess.columns[i].reason);
  }
  return absl::InvalidArgumentError(absl::StrCat("no column can be a feature", reasons));
}

std::string ConfigurationFor(const CsvSample& sample, const CsvGuess& guess, const std::string& path) {
  const bool has_classes = guess.classes > 0;
  std::string columns;
  for (const ColumnGuess& column : guess.columns) {
    // With a header line, columns that the configuration does not name are left out.
    if (column.column.type() == Csv::SKIP && sample.has_header) continue;
    absl::StrAppend(&columns, "      ", ColumnText(column.column, sample.has_header), "\n");
  }
  const auto train_rows = static_cast<int64_t>((1 - kTestFraction) * static_cast<double>(sample.file_rows));
  const int64_t steps = std::min(kMaxSteps, std::max<int64_t>(200, kEpochs * train_rows / kBatch));
  // A layer whose weights begin at 0, whose bias begins at the mean, and that changes in units of the deviation learns
  // the same as from standardized numbers.
  const std::string output =
      has_classes ? absl::StrCat("units: ", guess.classes)
                  : absl::StrCat("units: 1 kernel_initializer { zeros {} } bias_initializer { constant { value: ",
                                 guess.target_mean, " } }");
  const std::string group =
      has_classes
          ? ""
          : absl::StrCat("  # The output begins at the mean of the numbers to predict, and changes in units of ",
                         "their deviation.\n  group { variables: \"^output/\" rate_factor: ", guess.target_deviation,
                         " }\n");
  return absl::StrCat(
      "# proto-file: lockstep/config/v1/run_spec.proto\n# proto-message: lockstep.config.v1.RunSpec\n#\n",
      "# Made by `lockstep new --csv` from ", sample.rows.size(), " rows of the file. Every field is described in\n",
      "# proto/lockstep/config/v1/*.proto.\n", "model {\n",
      "  layer { name: \"hidden\" dense { units: 64 activation: RELU } }\n", "  layer { name: \"output\" dense { ",
      output, " } }\n", "  loss { ", has_classes ? "softmax_cross_entropy" : "mean_squared_error",
      " {} }\n}\n\ninput {\n  split {\n", "    name: \"train\"\n    csv {\n      file: ", Quoted(path), "\n",
      sample.separator == ',' ? "" : absl::StrCat("      separator: ", Quoted(std::string(1, sample.separator)), "\n"),
      sample.has_header ? "" : "      no_header: true\n", columns, "    }\n  }\n",
      sample.file_rows < kLeastRowsToDivide
          ? ""
          : absl::StrCat("  # A fifth of the rows, drawn from the seed, is the split \"test\".\n  test_fraction: ",
                         kTestFraction, "\n"),
      sample.damaged > 0 || !sample.is_whole ? "  on_damage: SKIP_AND_COUNT\n" : "",
      "  # Examples of one slot; a step has replicas_to_aggregate slots.\n  batch_size: ", kBatch / 2, "\n}\n\n",
      "optimizer {\n  adam {}\n  learning_rate { initial: 0.003 }\n", group, "}\n\n", "training {\n  steps: ", steps,
      "\n  replicas_to_aggregate: 2\n  seed: 1\n}\n");
}

}  // namespace lockstep
