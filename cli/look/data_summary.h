#ifndef LOCKSTEP_CLI_LOOK_DATA_SUMMARY_H_
#define LOCKSTEP_CLI_LOOK_DATA_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// The range of one feature, or of all features together.
struct ValueRange {
  double least = 0;
  double greatest = 0;
  double mean = 0;
  double stddev = 0;
};

// A summary of a split's labels or targets, and of its features, in the form in which a model gets them.
struct DataSummary {
  // Number of examples that were read.
  int64_t examples = 0;
  // Number of examples of each class. Empty if the labels are targets.
  std::vector<int64_t> labels;
  ValueRange features;
  // The range of each feature. Empty if there are more than kMostColumns.
  std::vector<ValueRange> columns;
  std::vector<ValueRange> targets;
  // Names of all features and of all targets: those of csv columns, or their indices.
  std::vector<std::string> column_names;
  std::vector<std::string> target_names;

  static constexpr int64_t kMostColumns = 64;
};

// Returns the indices of `count` examples of a dataset, spread evenly: 0, size / count, ... Returns the indices of all
// examples if there are no more than `count`.
std::vector<int64_t> SpreadExamples(int64_t size, int64_t count);

// Summarizes at most `most` examples, which are spread evenly and read a few at a time. Returns errors from
// Dataset::Read.
absl::StatusOr<DataSummary> Summarize(const Dataset& dataset, int64_t most);

// Formats label counts and ranges as tables. `names` has the classes' names, or is empty.
std::string SummaryText(const DataSummary& summary, const std::vector<std::string>& names);

// Returns a table of the examples with these indices: row, ID, label or targets, and the first features.
absl::StatusOr<std::string> ExampleTable(const Dataset& dataset, const std::vector<int64_t>& examples,
                                         const std::vector<std::string>& names);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOOK_DATA_SUMMARY_H_
