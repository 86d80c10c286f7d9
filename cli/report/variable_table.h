#ifndef LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_
#define LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {

// What the numbers of a variable are like; those of one with a NaN are NaN.
struct ValueStatistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  // Of the elements, not of what they are a sample of.
  double deviation = 0;
};

// Of a tensor with elements, float32 or int64; nullopt of any other.
absl::optional<ValueStatistics> StatisticsOf(const Tensor& tensor);

// A variable of a checkpoint or of a run, for people and programs.
struct VariableRow {
  std::string name;
  std::string dtype;
  std::string shape;
  uint64_t bytes = 0;
  absl::optional<ValueStatistics> statistics;
};

uint64_t TotalBytes(const std::vector<VariableRow>& rows);

// A line of titles, and one for each row; with statistics where the first row has them.
void PrintVariableTable(const std::vector<VariableRow>& rows, std::ostream& out);

// The rows as a JSON list of objects: {"name", "dtype", "shape", "bytes"}, and with statistics "min", "max", "mean",
// "deviation".
void PrintVariableJson(const std::vector<VariableRow>& rows, std::ostream& out);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_VARIABLE_TABLE_H_
