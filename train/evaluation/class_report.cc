#include "lockstep/train/evaluation/class_report.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "lockstep/common/report/text_table.h"

namespace lockstep {
namespace {

double Ratio(double dividend, double divisor) {
  return divisor == 0 ? std::numeric_limits<double>::quiet_NaN() : dividend / divisor;
}

std::string Text(double x) { return std::isnan(x) ? "-" : absl::StrFormat("%.4f", x); }
std::string CsvNumber(double x) { return std::isnan(x) ? "" : absl::StrFormat("%.6g", x); }

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// The mean over the classes for which a value is defined.
class MeanOfDefined {
 public:
  void Add(double x) {
    if (std::isnan(x)) return;
    sum_ += x;
    ++count_;
  }
  double Result() const { return Ratio(sum_, count_); }

 private:
  double sum_ = 0;
  double count_ = 0;
};

}  // namespace

double ClassReport::Class::precision() const {
  return Ratio(static_cast<double>(correct), static_cast<double>(answers));
}
double ClassReport::Class::recall() const { return Ratio(static_cast<double>(correct), static_cast<double>(examples)); }
double ClassReport::Class::f1() const {
  return Ratio(2.0 * static_cast<double>(correct), static_cast<double>(examples + answers));
}

ClassReport ReportClasses(const MetricValue& matrix, const std::vector<std::string>& names) {
  ClassReport report;
  report.matrix = matrix.matrix;
  report.classes.resize(matrix.classes);
  for (int64_t label = 0; label < matrix.classes; ++label) {
    if (label < static_cast<int64_t>(names.size())) report.classes[label].name = names[label];
    for (int64_t answer = 0; answer < matrix.classes; ++answer) {
      const int64_t count = matrix.matrix[label * matrix.classes + answer];
      report.classes[label].examples += count;
      report.classes[answer].answers += count;
      if (label == answer) report.classes[label].correct = count;
    }
  }
  return report;
}

std::string ClassReportText(const ClassReport& report) {
  TextTable table({{"class", TextTable::kRight},
                   {"name"},
                   {"examples", TextTable::kRight},
                   {"precision", TextTable::kRight},
                   {"recall", TextTable::kRight},
                   {"f1", TextTable::kRight}});
  MeanOfDefined precision, recall, f1;
  int64_t examples = 0;
  for (size_t i = 0; i < report.classes.size(); ++i) {
    const ClassReport::Class& row = report.classes[i];
    table.AddRow({absl::StrCat(i), row.name, absl::StrCat(row.examples), Text(row.precision()), Text(row.recall()),
                  Text(row.f1())});
    examples += row.examples;
    precision.Add(row.precision());
    recall.Add(row.recall());
    f1.Add(row.f1());
  }
  table.AddRow(
      {"mean", "", absl::StrCat(examples), Text(precision.Result()), Text(recall.Result()), Text(f1.Result())});
  return table.Render();
}

std::string ClassReportCsv(const ClassReport& report) {
  const size_t classes = report.classes.size();
  std::string csv = "class,name,examples,precision,recall,f1";
  for (size_t i = 0; i < classes; ++i) absl::StrAppend(&csv, ",as_", i);
  csv += "\n";
  for (size_t i = 0; i < classes; ++i) {
    const ClassReport::Class& row = report.classes[i];
    absl::StrAppend(&csv, i, ",", CsvField(row.name), ",", row.examples, ",", CsvNumber(row.precision()), ",");
    absl::StrAppend(&csv, CsvNumber(row.recall()), ",", CsvNumber(row.f1()));
    for (size_t answer = 0; answer < classes; ++answer) absl::StrAppend(&csv, ",", report.matrix[i * classes + answer]);
    csv += "\n";
  }
  return csv;
}

}  // namespace lockstep
