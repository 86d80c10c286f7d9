#include "lockstep/worker/evaluation/prediction.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

void AppendFloat(float value, std::string* out) {
  char digits[32];
  const std::to_chars_result result = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, result.ptr);
}

int64_t PredictedClass(absl::Span<const float> outputs, float threshold) {
  if (outputs.size() == 1) return outputs[0] > threshold ? 1 : 0;
  return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
}

// Quotes `text` if it would otherwise not be a single field.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Returns the numbers to write for the outputs of an example.
std::vector<float> Columns(absl::Span<const float> outputs, PredictionOptions::Outputs kind) {
  std::vector<float> columns(outputs.begin(), outputs.end());
  if (kind == PredictionOptions::Outputs::kSoftmax) {
    const double greatest = *std::max_element(outputs.begin(), outputs.end());
    double sum = 0;
    for (const float output : outputs) sum += std::exp(output - greatest);
    for (float& column : columns) column = static_cast<float>(std::exp(column - greatest) / sum);
  }
  if (kind == PredictionOptions::Outputs::kSigmoid) {
    for (float& column : columns) column = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(column))));
    if (columns.size() == 1) {
      columns.insert(columns.begin(), static_cast<float>(1 / (1 + std::exp(static_cast<double>(outputs[0])))));
    }
  }
  return columns;
}

// A writer of predictions as lines, batch by batch. It also writes a line for each row without an example.
class LineWriter {
 public:
  LineWriter(const Dataset& dataset, const PredictionOptions& options, WritableFile* file)
      : dataset_(dataset),
        options_(options),
        id_name_(dataset.id_name()),
        has_label_(dataset.has_labels() && dataset.spec().labels_dtype == v1::DT_INT32),
        has_class_(has_label_ || (!dataset.has_labels() && options.has_classes)),
        file_(file) {}

  absl::Status Write(int64_t first_example, const Batch& batch, const Tensor& predictions) {
    const int64_t elements = predictions.num_elements();
    if (batch.size == 0 || predictions.dtype() != v1::DT_FLOAT || elements == 0 || elements % batch.size != 0) {
      return absl::InternalError(absl::StrCat("predictions of type ", NameOf(predictions.dtype()), " and shape ",
                                              predictions.shape().ToString(), " for ", batch.size, " examples"));
    }
    const int64_t outputs = elements / batch.size;
    std::string lines;
    if (first_example == 0) RETURN_IF_ERROR(AppendHeader(outputs, &lines));
    for (int64_t i = 0; i < batch.size; ++i) {
      RETURN_IF_ERROR(AppendRowsBefore(first_example + i, &lines));
      RETURN_IF_ERROR(AppendRow(&lines));
      if (has_label_) AppendLabel(batch.labels.flat<int32_t>()[i], &lines);
      AppendAnswer(predictions.flat<float>().subspan(i * outputs, outputs), &lines);
    }
    return file_->Append(lines);
  }

  // Writes the rows after the last example.
  absl::Status Finish() {
    std::string lines;
    RETURN_IF_ERROR(AppendRowsBefore(dataset_.size(), &lines));
    return file_->Append(lines);
  }

 private:
  // Appends lines without predictions for the rows between the last row written and that of `example`.
  absl::Status AppendRowsBefore(int64_t example, std::string* lines) {
    while (row_ < dataset_.rows() && dataset_.RowAt(row_).example != example) {
      RETURN_IF_ERROR(AppendRow(lines));
      lines->append(columns_, ',');
      lines->push_back('\n');
    }
    return absl::OkStatus();
  }

  // Appends the number of the next row, and its identifier.
  absl::Status AppendRow(std::string* lines) {
    absl::StrAppend(lines, dataset_.RowAt(row_).number);
    if (!id_name_.empty()) {
      ASSIGN_OR_RETURN(const std::string id, dataset_.ReadId(row_));
      absl::StrAppend(lines, ",", Field(id));
    }
    ++row_;
    return absl::OkStatus();
  }

  bool has_names() const { return has_class_ && !options_.class_names.empty(); }

  absl::Status AppendHeader(int64_t outputs, std::string* lines) {
    const size_t classes = outputs == 1 ? 2 : static_cast<size_t>(outputs);
    if (has_names() && options_.class_names.size() < classes) {
      return absl::InvalidArgumentError(absl::StrCat("there are names for ", options_.class_names.size(),
                                                     " classes, the model answers with one of ", classes));
    }
    absl::StrAppend(lines, "example", id_name_.empty() ? "" : ",", Field(id_name_), has_label_ ? ",label" : "",
                    has_class_ ? ",class" : "", has_names() ? ",class_name" : "");
    const bool as_they_are = options_.outputs == PredictionOptions::Outputs::kAsTheyAre;
    const bool is_pair = options_.outputs == PredictionOptions::Outputs::kSigmoid && outputs == 1;
    for (int64_t i = 0; i < (is_pair ? 2 : outputs); ++i) {
      absl::StrAppend(lines, as_they_are ? ",output_" : ",probability_", i);
    }
    columns_ = has_label_ + has_class_ + has_names() + static_cast<size_t>(is_pair ? 2 : outputs);
    lines->push_back('\n');
    return absl::OkStatus();
  }

  static void AppendLabel(int32_t label, std::string* lines) {
    lines->push_back(',');
    // A label of -1 is unknown (DatasetOptions::labels_unchecked).
    if (label >= 0) absl::StrAppend(lines, label);
  }

  void AppendAnswer(absl::Span<const float> outputs, std::string* lines) const {
    const int64_t answer = PredictedClass(outputs, options_.class_threshold);
    if (has_class_) absl::StrAppend(lines, ",", answer);
    if (has_names()) absl::StrAppend(lines, ",", Field(options_.class_names[answer]));
    for (const float value : Columns(outputs, options_.outputs)) {
      lines->push_back(',');
      AppendFloat(value, lines);
    }
    lines->push_back('\n');
  }

  const Dataset& dataset_;
  const PredictionOptions& options_;
  const std::string id_name_;
  const bool has_label_, has_class_;
  WritableFile* const file_;
  // The next row to write.
  int64_t row_ = 0;
  // Number of columns after the row's number and identifier.
  size_t columns_ = 0;
};

absl::Status WriteLines(Model* model, VariableValues values, const Dataset& dataset, const PredictionOptions& options,
                        WritableFile* file) {
  LineWriter writer(dataset, options, file);
  const auto write = [&](int64_t first_example, const Batch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Tensor predictions, model->Predict(values, batch));
    return writer.Write(first_example, batch, predictions);
  };
  RETURN_IF_ERROR(ForEachBatch(dataset, options.evaluation, write));
  RETURN_IF_ERROR(writer.Finish());
  return file->Sync();
}

}  // namespace

absl::Status WritePredictions(Model* model, VariableValues values, const Dataset& dataset,
                              const PredictionOptions& options, FileSystem* fs, const std::string& path) {
  const std::string temporary = path + ".tmp";
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  absl::Status status = WriteLines(model, values, dataset, options, file.get());
  const absl::Status closed = file->Close();
  if (status.ok()) status = closed;
  if (status.ok()) return fs->Rename(temporary, path);
  fs->Remove(temporary).IgnoreError();  // Reports the first error.
  return status;
}

}  // namespace lockstep
