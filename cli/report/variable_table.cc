#include "lockstep/cli/report/variable_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {
namespace {

// Limits the width of a column, so that one long name does not widen every line.
constexpr size_t kWidestColumn = 100;

template <typename T>
absl::optional<ValueStatistics> StatisticsOfValues(absl::Span<const T> values) {
  if (values.empty()) return absl::nullopt;
  double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0, squares = 0;
  bool any_nan = false;
  for (const T element : values) {
    const auto value = static_cast<double>(element);
    any_nan |= std::isnan(value);
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
  }
  const double mean = sum / static_cast<double>(values.size());
  for (const T element : values) squares += std::pow(static_cast<double>(element) - mean, 2);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return ValueStatistics{any_nan ? nan : min, any_nan ? nan : max, mean,
                         std::sqrt(squares / static_cast<double>(values.size()))};
}

std::string NumberText(double value) { return absl::StrFormat("%.4g", value); }

}  // namespace

absl::optional<ValueStatistics> StatisticsOf(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case v1::DT_FLOAT:
      return StatisticsOfValues(tensor.flat<float>());
    case v1::DT_INT32:
      return StatisticsOfValues(tensor.flat<int32_t>());
    case v1::DT_UINT8:
    case v1::DT_BOOL:
      return StatisticsOfValues(tensor.flat<uint8_t>());
    case v1::DT_INT64:
      return StatisticsOfValues(tensor.flat<int64_t>());
    default:
      return absl::nullopt;
  }
}

uint64_t TotalBytes(const std::vector<VariableRow>& rows) {
  uint64_t total = 0;
  for (const VariableRow& row : rows) total += row.bytes;
  return total;
}

void PrintVariableTable(const std::vector<VariableRow>& rows, std::ostream& out) {
  size_t name_width = 4, dtype_width = 5, shape_width = 5;
  std::vector<std::string> names;
  for (const VariableRow& row : rows) {
    names.push_back(absl::Utf8SafeCHexEscape(row.name));
    name_width = std::max(name_width, names.back().size());
    dtype_width = std::max(dtype_width, row.dtype.size());
    shape_width = std::max(shape_width, row.shape.size());
  }
  name_width = std::min(name_width, kWidestColumn);
  shape_width = std::min(shape_width, kWidestColumn);
  const auto print = [&](absl::string_view name, absl::string_view dtype, absl::string_view shape,
                         absl::string_view bytes) {
    out << absl::StreamFormat("%-*s  %-*s  %-*s  %12s", name_width, name, dtype_width, dtype, shape_width, shape,
                              bytes);
  };
  print("name", "dtype", "shape", "bytes");
  const bool any_statistics =
      std::any_of(rows.begin(), rows.end(), [](const VariableRow& row) { return row.statistics.has_value(); });
  if (any_statistics) out << absl::StreamFormat("  %10s  %10s  %10s  %10s", "min", "max", "mean", "deviation");
  out << "\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    print(names[i], rows[i].dtype, rows[i].shape, absl::StrCat(rows[i].bytes));
    if (const auto& numbers = rows[i].statistics) {
      out << absl::StreamFormat("  %10s  %10s  %10s  %10s", NumberText(numbers->min), NumberText(numbers->max),
                                NumberText(numbers->mean), NumberText(numbers->deviation));
    }
    out << "\n";
  }
}

void PrintVariableJson(const std::vector<VariableRow>& rows, std::ostream& out) {
  out << "[";
  const char* separator = "\n  ";
  for (const VariableRow& row : rows) {
    out << separator << "{\"name\": " << JsonString(row.name) << ", \"dtype\": " << JsonString(row.dtype)
        << ", \"shape\": " << row.shape << ", \"bytes\": " << row.bytes;
    if (const auto& numbers = row.statistics) {
      out << ", \"min\": " << JsonNumber(numbers->min) << ", \"max\": " << JsonNumber(numbers->max)
          << ", \"mean\": " << JsonNumber(numbers->mean) << ", \"deviation\": " << JsonNumber(numbers->deviation);
    }
    out << "}";
    separator = ",\n  ";
  }
  out << "]";
}

}  // namespace lockstep
