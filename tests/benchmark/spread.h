#ifndef LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_
#define LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_

#include <string>
#include <vector>

#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

// Returns the minimum, median and maximum of a non-empty series.
Spread SpreadOf(std::vector<double> series);

// Fills in `ours`, `theirs` and `ratio` of `row` from two series of the same length that were measured alternately.
void Compare(const std::vector<double>& ours, const std::vector<double>& theirs, Row* row);

// Returns the report as a text table with one line per row, which also says whether the row meets its bar.
std::string ReportText(const Report& report);

// Returns the report as a Markdown table.
std::string ReportMarkdown(const Report& report);

// Returns the report as JSON.
std::string ReportJson(const Report& report);

// Returns true if every row with a bar meets it.
bool AllBarsMet(const Report& report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_
