#include "worker/train/prediction.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

void AppendFloat(float value, std::string* out) {
  char digits[32];
  const std::to_chars_result result = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, result.ptr);
}

int64_t PredictedClass(absl::Span<const float> outputs) {
  if (outputs.size() == 1) return outputs[0] > 0 ? 1 : 0;
  return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
}

std::string Header(bool has_classes, int64_t outputs) {
  std::string line = has_classes ? "example,label,class" : "example";
  for (int64_t i = 0; i < outputs; ++i) absl::StrAppend(&line, ",output_", i);
  return line + "\n";
}

absl::Status AppendLines(int64_t first_example, const Batch& batch, const Tensor& predictions, WritableFile* file) {
  const bool has_classes = batch.labels.dtype() == DT_INT32;
  if (batch.size == 0 || predictions.dtype() != DT_FLOAT || predictions.num_elements() % batch.size != 0) {
    return absl::InternalError(absl::StrCat("predictions of type ", NameOf(predictions.dtype()), " and shape ",
                                            predictions.shape().ToString(), " for ", batch.size, " examples"));
  }
  const int64_t outputs = predictions.num_elements() / batch.size;
  std::string lines = first_example == 0 ? Header(has_classes, outputs) : "";
  for (int64_t i = 0; i < batch.size; ++i) {
    const absl::Span<const float> row = predictions.flat<float>().subspan(i * outputs, outputs);
    absl::StrAppend(&lines, first_example + i);
    if (has_classes) absl::StrAppend(&lines, ",", batch.labels.flat<int32_t>()[i], ",", PredictedClass(row));
    for (const float value : row) {
      lines.push_back(',');
      AppendFloat(value, &lines);
    }
    lines.push_back('\n');
  }
  return file->Append(lines);
}

absl::Status WriteLines(Model* model, VariableValues values, const Dataset& dataset, const EvaluationOptions& options,
                        WritableFile* file) {
  RETURN_IF_ERROR(ForEachBatch(dataset, options, [&](int64_t first_example, const Batch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Tensor predictions, model->Predict(values, batch));
    return AppendLines(first_example, batch, predictions, file);
  }));
  return file->Sync();
}

}  // namespace

absl::Status WritePredictions(Model* model, VariableValues values, const Dataset& dataset,
                              const EvaluationOptions& options, FileSystem* fs, const std::string& path) {
  const std::string temporary = path + ".tmp";
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  absl::Status status = WriteLines(model, values, dataset, options, file.get());
  const absl::Status closed = file->Close();
  if (status.ok()) status = closed;
  if (status.ok()) return fs->Rename(temporary, path);
  fs->Remove(temporary).IgnoreError();  // The first error is the one to tell.
  return status;
}

}  // namespace lockstep
