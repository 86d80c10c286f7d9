#include "lockstep/train/learn/model_export.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep::train {
namespace {

constexpr char kGlobalStep[] = "global_step";

absl::Status WriteCheckpoint(FileSystem* fs, const TensorReader& source, std::vector<std::string> names,
                             const std::string& prefix) {
  names.push_back(kGlobalStep);
  BundleWriterOptions options;
  options.written_by_saver = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(fs, prefix, options));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const Tensor value, source.Read(name));
    RETURN_IF_ERROR(writer->Add(name, value.dtype(), value.shape(), value.bytes()));
  }
  return writer->Finish();
}

// The variables as a checkpoint, and in the formats of others.
absl::Status WriteVariables(FileSystem* fs, const EvaluationMetrics& result, const v1::ModelSpec& model,
                            const std::string& directory) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> source, BundleReader::Open(fs, result.checkpoint));
  TensorFileContents contents;
  for (const v1::VariableSpec& variable : model.variables()) contents.names.push_back(variable.name());
  contents.metadata[kGlobalStep] = absl::StrCat(result.global_step);
  for (const TensorFileFormat format : {TensorFileFormat::kSafetensors, TensorFileFormat::kNpz}) {
    const std::string path = JoinPath(directory, absl::StrCat("model.", NameOf(format)));
    RETURN_IF_ERROR(WriteTensorFile(fs, path, format, *source, contents));
  }
  const std::string prefix = JoinPath(directory, absl::StrCat("model.ckpt-", result.global_step));
  RETURN_IF_ERROR(WriteCheckpoint(fs, *source, std::move(contents.names), prefix));
  return WriteCheckpointState(fs, directory, prefix, {prefix});
}

std::string MetricsJson(const EvaluationMetrics& result) {
  const std::string metrics = absl::StrJoin(result.metrics, ", ", [](std::string* out, const auto& metric) {
    absl::StrAppend(out, JsonString(metric.first), ": ", JsonNumber(metric.second));
  });
  return absl::StrCat("{\"step\": ", result.global_step, ", \"metrics\": {", metrics, "}}\n");
}

}  // namespace

absl::Status ExportModel(FileSystem* fs, const std::string& model_dir, const EvaluationMetrics& result,
                         const std::string& directory) {
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs, model_dir));
  if (!record) {
    return absl::NotFoundError(absl::StrCat(model_dir, " is not a run's logdir: it has no ", kRunRecordFile));
  }
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  RETURN_IF_ERROR(WriteVariables(fs, result, record->model(), directory));
  RETURN_IF_ERROR(WriteFileAtomically(fs, JoinPath(directory, "evaluation.json"), MetricsJson(result)));
  v1::RunRecord exported;
  *exported.mutable_config() = record->config();
  *exported.mutable_model() = record->model();
  *exported.mutable_build() = record->build();
  return WriteRunRecord(fs, directory, exported);
}

}  // namespace lockstep::train
