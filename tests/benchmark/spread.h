#ifndef LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_
#define LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_

#include <string>
#include <vector>

#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

// Minimum, median and maximum of a non-empty series.
Spread SpreadOf(std::vector<double> series);

// Fills ours, theirs and ratio from two series of one length, measured in turns.
void Compare(const std::vector<double>& ours, const std::vector<double>& theirs, Row* row);

// The report as a table for people: one line a row, with the verdict of its bar.
std::string ReportText(const Report& report);

// As the table of a Markdown page.
std::string ReportMarkdown(const Report& report);

// As JSON.
std::string ReportJson(const Report& report);

// Whether every row with a bar is within it.
bool AllBarsMet(const Report& report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_SPREAD_H_
