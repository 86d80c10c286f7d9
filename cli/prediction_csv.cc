#include "cli/prediction_csv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

int64_t OutputsOf(const Tensor& output) { return output.shape().num_elements() / output.shape().dim(0); }

// The class of the greatest output, the first of equals; of one output, whether it is above 0.
int64_t PredictedClass(const float* output, int64_t count) {
  return count == 1 ? (output[0] > 0 ? 1 : 0) : std::max_element(output, output + count) - output;
}

void AppendFloats(const float* values, int64_t count, std::string* line) {
  for (int64_t i = 0; i < count; ++i) absl::StrAppendFormat(line, ",%.9g", values[i]);
}

}  // namespace

std::string PredictionCsv::Titles(const Tensor& output) const {
  std::string line = "example";
  if (examples_.classes > 0) {
    line += ",label,prediction";
  } else {
    for (int64_t i = 0; i < examples_.labels_shape.num_elements(); ++i) absl::StrAppend(&line, ",label_", i);
  }
  for (int64_t i = 0; i < OutputsOf(output); ++i) absl::StrAppend(&line, ",output_", i);
  return line + "\n";
}

std::string PredictionCsv::Rows(int64_t first_example, const Batch& batch, const Tensor& output) const {
  const int64_t outputs = OutputsOf(output);
  const int64_t targets = examples_.labels_shape.num_elements();
  std::string lines;
  for (int64_t i = 0; i < batch.size; ++i) {
    absl::StrAppend(&lines, first_example + i);
    const float* row = output.flat<float>().data() + i * outputs;
    if (examples_.classes > 0) {
      absl::StrAppend(&lines, ",", batch.labels.flat<int32_t>()[i], ",", PredictedClass(row, outputs));
    } else {
      AppendFloats(batch.labels.flat<float>().data() + i * targets, targets, &lines);
    }
    AppendFloats(row, outputs, &lines);
    lines += '\n';
  }
  return lines;
}

}  // namespace lockstep
