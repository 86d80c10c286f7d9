#ifndef LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_
#define LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {

// Statistics of a variable's elements. They are NaN if any element is NaN.
struct ValueStatistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  // Population standard deviation (divides by n, not n - 1).
  double deviation = 0;
};

// Returns the statistics of a non-empty tensor of a variable's type, or nullopt for any other tensor. A bool counts as
// 0 or 1.
absl::optional<ValueStatistics> StatisticsOf(const Tensor& tensor);

// A variable of a checkpoint or a run, for printing.
struct VariableRow {
  std::string name;
  std::string dtype;
  std::string shape;
  uint64_t bytes = 0;
  absl::optional<ValueStatistics> statistics;
};

uint64_t TotalBytes(const std::vector<VariableRow>& rows);

// Prints a header line and a line for each row, with statistics in the rows that have them.
void PrintVariableTable(const std::vector<VariableRow>& rows, std::ostream& out);

// Prints the rows as a JSON list of objects: {"name", "dtype", "shape", "bytes"}, and with statistics "min", "max",
// "mean", "deviation".
void PrintVariableJson(const std::vector<VariableRow>& rows, std::ostream& out);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_
