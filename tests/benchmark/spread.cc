#include "lockstep/tests/benchmark/spread.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "google/protobuf/util/json_util.h"
#include "lockstep/common/report/text_table.h"

namespace lockstep {
namespace benchmark {
namespace {

std::string NumberText(double value) { return absl::StrFormat(value < 10 ? "%.3f" : "%.1f", value); }

std::string SpreadText(const Spread& spread) {
  if (spread.runs() == 0) return "";
  if (spread.runs() == 1) return NumberText(spread.median());
  return absl::StrCat(NumberText(spread.minimum()), " ", NumberText(spread.median()), " ",
                      NumberText(spread.maximum()));
}

bool IsMet(const Row& row) {
  return (!row.has_at_most() || row.ratio().median() <= row.at_most()) &&
         (!row.has_at_least() || row.ratio().median() >= row.at_least());
}

std::string BarText(const Row& row) {
  if (!row.has_at_most() && !row.has_at_least()) return "";
  return absl::StrCat(row.has_at_most() ? absl::StrCat("<= ", row.at_most()) : absl::StrCat(">= ", row.at_least()),
                      IsMet(row) ? " met" : " MISSED");
}

}  // namespace

Spread SpreadOf(std::vector<double> series) {
  CHECK(!series.empty());
  std::sort(series.begin(), series.end());
  Spread spread;
  spread.set_minimum(series.front());
  spread.set_median((series[(series.size() - 1) / 2] + series[series.size() / 2]) / 2);
  spread.set_maximum(series.back());
  spread.set_runs(static_cast<int>(series.size()));
  return spread;
}

void Compare(const std::vector<double>& ours, const std::vector<double>& theirs, Row* row) {
  CHECK_EQ(ours.size(), theirs.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
  *row->mutable_ours() = SpreadOf(ours);
  *row->mutable_theirs() = SpreadOf(theirs);
  *row->mutable_ratio() = SpreadOf(ratios);
}

std::string ReportText(const Report& report) {
  TextTable table({{"group"},
                   {"what"},
                   {"unit"},
                   {"ours: min median max", TextTable::kRight},
                   {"against"},
                   {"min median max", TextTable::kRight},
                   {"ratio: min median max", TextTable::kRight},
                   {"bar"}});
  for (const Row& row : report.row()) {
    table.AddRow({row.group(), row.what(), row.unit(), SpreadText(row.ours()), row.against(), SpreadText(row.theirs()),
                  SpreadText(row.ratio()), BarText(row)});
  }
  return absl::StrCat("Machine: ", report.machine(), "; load before: ", NumberText(report.load_before()), "\n",
                      table.Render());
}

std::string ReportMarkdown(const Report& report) {
  std::string text =
      "| group | what | unit | ours: min median max | against | min median max | ratio: min median max | bar |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : report.row()) {
    const std::vector<std::string> cells = {row.group(),
                                            row.what(),
                                            row.unit(),
                                            SpreadText(row.ours()),
                                            row.against(),
                                            SpreadText(row.theirs()),
                                            SpreadText(row.ratio()),
                                            BarText(row)};
    absl::StrAppend(&text, "| ", absl::StrJoin(cells, " | "), " |\n");
  }
  return text;
}

std::string ReportJson(const Report& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(report, &json, options).ok());
  return json;
}

bool AllBarsMet(const Report& report) { return std::all_of(report.row().begin(), report.row().end(), IsMet); }

}  // namespace benchmark
}  // namespace lockstep
