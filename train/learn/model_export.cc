#include "lockstep/train/learn/model_export.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/session/end/pause.h"

namespace lockstep::train {
namespace {

constexpr char kGlobalStep[] = "global_step";
constexpr char kMetricsFile[] = "evaluation.json";
constexpr char kLockFile[] = "export.lock";
constexpr absl::Duration kLockPeriod = absl::Milliseconds(20);

// Waits for the lock, because a run's chief and evaluator may export the same checkpoint at the same time.
absl::StatusOr<std::unique_ptr<FileSystem::Lock>> AwaitLock(FileSystem* fs, const std::string& path, Clock* clock,
                                                            StopSignal* stop) {
  auto lock = fs->LockFile(path);
  LOG_IF(INFO, absl::IsFailedPrecondition(lock.status())) << "waiting for another export: " << lock.status().message();
  while (absl::IsFailedPrecondition(lock.status())) {
    RETURN_IF_ERROR(Pause(kLockPeriod, clock, stop));
    lock = fs->LockFile(path);
  }
  return lock;
}

std::string PrefixIn(const std::string& directory, int64_t step) {
  return JoinPath(directory, absl::StrCat("model.ckpt-", step));
}

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

// Writes the variables as a checkpoint and in the formats for other programs.
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
  const std::string prefix = PrefixIn(directory, result.global_step);
  RETURN_IF_ERROR(WriteCheckpoint(fs, *source, std::move(contents.names), prefix));
  return WriteCheckpointState(fs, directory, prefix, {prefix});
}

std::string MetricsJson(const EvaluationMetrics& result) {
  const std::string metrics = absl::StrJoin(result.metrics, ", ", [](std::string* out, const auto& metric) {
    absl::StrAppend(out, JsonString(metric.first), ": ", JsonNumber(metric.second));
  });
  return absl::StrCat("{\"step\": ", result.global_step, ", \"metrics\": {", metrics, "}}\n");
}

absl::Status CheckSameVariables(FileSystem* fs, const EvaluationMetrics& result, const v1::ModelSpec& model,
                                const std::string& directory) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> source, BundleReader::Open(fs, result.checkpoint));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> present,
                   BundleReader::Open(fs, PrefixIn(directory, result.global_step)));
  for (const v1::VariableSpec& variable : model.variables()) {
    ASSIGN_OR_RETURN(const Tensor expected, source->Read(variable.name()));
    ASSIGN_OR_RETURN(const Tensor found, present->Read(variable.name()));
    if (expected.bytes() != found.bytes()) return absl::NotFoundError(variable.name());
  }
  return absl::OkStatus();
}

// Returns true if the same export already exists and is complete. An unreadable export counts as missing.
bool IsExported(FileSystem* fs, const EvaluationMetrics& result, const v1::RunRecord& exported,
                const std::string& directory) {
  const auto present = ReadRunRecord(fs, directory);
  if (!present.ok() || !*present || !FirstDifference(**present, exported).empty()) return false;
  const auto metrics = ReadFile(fs, JoinPath(directory, kMetricsFile));
  return metrics.ok() && *metrics == MetricsJson(result) &&
         CheckSameVariables(fs, result, exported.model(), directory).ok();
}

// Removes the record of an older export from the directory, so that the directory does not count as an export while its
// files change.
absl::Status RemoveRecord(FileSystem* fs, const std::string& directory) {
  const absl::Status status = fs->Remove(JoinPath(directory, kRunRecordFile));
  if (absl::IsNotFound(status)) return absl::OkStatus();
  RETURN_IF_ERROR(status);
  return fs->SyncDirectory(directory);
}

}  // namespace

absl::Status ExportModel(FileSystem* fs, const std::string& model_dir, const EvaluationMetrics& result,
                         const std::string& directory, Clock* clock, StopSignal* stop) {
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs, model_dir));
  if (!record) {
    return absl::NotFoundError(absl::StrCat(model_dir, " is not a run's logdir: it has no ", kRunRecordFile));
  }
  v1::RunRecord exported;
  *exported.mutable_config() = record->config();
  *exported.mutable_model() = record->model();
  *exported.mutable_build() = record->build();
  // Lets predictions prepare other data in the same way as the training split.
  if (record->data().prepared_size() > 0) *exported.mutable_data()->mutable_prepared() = record->data().prepared();
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  ASSIGN_OR_RETURN(const auto lock, AwaitLock(fs, JoinPath(std::string(Dirname(directory)), kLockFile), clock, stop));
  if (IsExported(fs, result, exported, directory)) return absl::OkStatus();
  RETURN_IF_ERROR(RemoveRecord(fs, directory));
  RETURN_IF_ERROR(WriteVariables(fs, result, record->model(), directory));
  RETURN_IF_ERROR(WriteFileAtomically(fs, JoinPath(directory, kMetricsFile), MetricsJson(result)));
  return WriteRunRecord(fs, directory, exported);
}

}  // namespace lockstep::train
