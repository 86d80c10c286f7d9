#include "lockstep/cli/look/data_summary.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/report/text_table.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/v1/data.pb.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 64;
// Number of an example's features that a table shows.
constexpr int64_t kShownFeatures = 8;

// Tracks the range of numbers that are added one by one.
class RangeOfNumbers {
 public:
  void Add(double x) {
    range_.least = std::min(range_.least, x);
    range_.greatest = std::max(range_.greatest, x);
    // Welford's recurrence.
    const double distance = x - range_.mean;
    range_.mean += distance / static_cast<double>(++count_);
    squares_ += distance * (x - range_.mean);
  }

  ValueRange Result() const {
    if (count_ == 0) return {};
    ValueRange range = range_;
    range.stddev = std::sqrt(squares_ / static_cast<double>(count_));
    return range;
  }

 private:
  ValueRange range_ = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0, 0};
  double squares_ = 0;
  int64_t count_ = 0;
};

// Returns element i of a tensor of floats or integers.
double NumberAt(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == v1::DT_FLOAT ? tensor.flat<float>()[i] : tensor.flat<int32_t>()[i];
}

std::string Text(double x) { return absl::StrFormat("%.6g", x); }

void AddRange(const std::string& name, const ValueRange& range, TextTable* table) {
  table->AddRow({name, Text(range.least), Text(range.greatest), Text(range.mean), Text(range.stddev)});
}

std::string NameOf(const std::vector<std::string>& names, int64_t label) {
  return label < static_cast<int64_t>(names.size()) ? names[label] : "";
}

std::string LabelText(const Dataset& dataset, const Batch& batch, int64_t i, const std::vector<std::string>& names) {
  if (dataset.spec().classes > 0) {
    const int64_t label = batch.labels.flat<int32_t>()[i];
    const std::string name = NameOf(names, label);
    return name.empty() ? absl::StrCat(label) : absl::StrCat(label, " ", name);
  }
  std::string text;
  const int64_t outputs = dataset.spec().labels_shape.num_elements();
  for (int64_t c = 0; c < std::min(outputs, kShownFeatures); ++c) {
    absl::StrAppend(&text, c > 0 ? " " : "", Text(NumberAt(batch.labels, i * outputs + c)));
  }
  return absl::StrCat(text, outputs > kShownFeatures ? " ..." : "");
}

// Returns the names of the csv columns of certain types, in order, if each of them makes one of the `count` values.
// Otherwise, for example with one_hot, returns the values' indices.
std::vector<std::string> ValueNames(const Dataset& dataset, size_t count,
                                    std::initializer_list<config::v1::InputConfig::Csv::Type> types) {
  std::vector<std::string> names;
  const v1::DataDigest digest = dataset.digest();
  for (const config::v1::InputConfig::Csv::Prepared& column : digest.prepared()) {
    if (std::find(types.begin(), types.end(), column.type()) != types.end()) names.push_back(column.column());
  }
  if (names.size() == count) return names;
  names.clear();
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat(i));
  return names;
}

}  // namespace

std::vector<int64_t> SpreadExamples(int64_t size, int64_t count) {
  count = std::min(size, count);
  std::vector<int64_t> examples(count);
  // Avoids overflow, because size is divided before it is multiplied by i, and the factors of the other product are
  // below 2^31.
  for (int64_t i = 0; i < count; ++i) examples[i] = size / count * i + size % count * i / count;
  return examples;
}

absl::StatusOr<DataSummary> Summarize(const Dataset& dataset, int64_t most) {
  const ExampleSpec& spec = dataset.spec();
  const int64_t features = spec.features_shape.num_elements();
  const int64_t targets = spec.classes > 0 ? 0 : spec.labels_shape.num_elements();
  const std::vector<int64_t> examples = SpreadExamples(dataset.size(), most);
  DataSummary summary;
  summary.examples = static_cast<int64_t>(examples.size());
  summary.labels.resize(spec.classes);
  RangeOfNumbers all;
  std::vector<RangeOfNumbers> columns(features <= DataSummary::kMostColumns ? features : 0), target_ranges(targets);
  for (int64_t begin = 0; begin < summary.examples; begin += kBatch) {
    const int64_t size = std::min(kBatch, summary.examples - begin);
    Batch batch;
    RETURN_IF_ERROR(dataset.Read({&examples[begin], static_cast<size_t>(size)}, &batch));
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t c = 0; c < features; ++c) {
        const double x = NumberAt(batch.features, i * features + c);
        all.Add(x);
        if (!columns.empty()) columns[c].Add(x);
      }
      for (int64_t c = 0; c < targets; ++c) target_ranges[c].Add(NumberAt(batch.labels, i * targets + c));
      if (spec.classes > 0) ++summary.labels[batch.labels.flat<int32_t>()[i]];
    }
  }
  summary.features = all.Result();
  for (const RangeOfNumbers& column : columns) summary.columns.push_back(column.Result());
  for (const RangeOfNumbers& target : target_ranges) summary.targets.push_back(target.Result());
  using Csv = config::v1::InputConfig::Csv;
  summary.column_names = ValueNames(dataset, columns.size(), {Csv::FLOAT, Csv::INT, Csv::CATEGORY});
  summary.target_names = ValueNames(dataset, target_ranges.size(), {Csv::TARGET});
  return summary;
}

std::string SummaryText(const DataSummary& summary, const std::vector<std::string>& names) {
  std::string text;
  if (!summary.labels.empty()) {
    TextTable table(
        {{"class", TextTable::kRight}, {"name"}, {"examples", TextTable::kRight}, {"share", TextTable::kRight}});
    for (size_t label = 0; label < summary.labels.size(); ++label) {
      const int64_t count = summary.labels[label];
      table.AddRow({absl::StrCat(label), NameOf(names, static_cast<int64_t>(label)), absl::StrCat(count),
                    absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(count) /
                                                   static_cast<double>(std::max<int64_t>(1, summary.examples)))});
    }
    absl::StrAppend(&text, table.Render(), "\n");
  }
  TextTable table({{"values"},
                   {"least", TextTable::kRight},
                   {"greatest", TextTable::kRight},
                   {"mean", TextTable::kRight},
                   {"deviation", TextTable::kRight}});
  AddRange("all features", summary.features, &table);
  if (summary.columns.size() > 1) {
    for (size_t c = 0; c < summary.columns.size(); ++c) {
      AddRange(absl::StrCat("feature ", summary.column_names[c]), summary.columns[c], &table);
    }
  }
  for (size_t c = 0; c < summary.targets.size(); ++c) {
    AddRange(absl::StrCat("target ", summary.target_names[c]), summary.targets[c], &table);
  }
  absl::StrAppend(&text, table.Render());
  return text;
}

absl::StatusOr<std::string> ExampleTable(const Dataset& dataset, const std::vector<int64_t>& examples,
                                         const std::vector<std::string>& names) {
  const int64_t features = dataset.spec().features_shape.num_elements();
  std::vector<TextTable::Column> columns = {{"row", TextTable::kRight}};
  const std::string id = dataset.id_name();
  if (!id.empty()) columns.push_back({id});
  columns.push_back({dataset.spec().classes > 0 ? "label" : "targets"});
  columns.push_back({features > kShownFeatures ? absl::StrCat("first of ", features, " features") : "features"});
  TextTable table(std::move(columns));
  // Finds the row of each example. There may be rows without an example in between.
  int64_t row = 0;
  for (const int64_t example : examples) {
    while (dataset.RowAt(row).example != example) ++row;
    Batch batch;
    RETURN_IF_ERROR(dataset.Read({&example, 1}, &batch));
    std::vector<std::string> cells = {absl::StrCat(dataset.RowAt(row).number)};
    if (!id.empty()) {
      ASSIGN_OR_RETURN(std::string text, dataset.ReadId(row));
      cells.push_back(std::move(text));
    }
    cells.push_back(LabelText(dataset, batch, 0, names));
    std::string numbers;
    for (int64_t c = 0; c < std::min(features, kShownFeatures); ++c) {
      absl::StrAppend(&numbers, c > 0 ? " " : "", Text(NumberAt(batch.features, c)));
    }
    cells.push_back(numbers);
    table.AddRow(std::move(cells));
  }
  return table.Render();
}

}  // namespace lockstep
