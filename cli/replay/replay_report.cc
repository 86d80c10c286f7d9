#include "lockstep/cli/replay/replay_report.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/report/variable_table.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"

namespace lockstep {
namespace {

// Formats a loss with enough digits to show every bit.
std::string LossText(double loss) { return absl::StrFormat("%.17g", loss); }
std::string LossText(float loss) { return absl::StrFormat("%.9g", loss); }

// Returns the CheckpointDigest of a checkpoint of the snapshot.
std::string DigestOf(const VariableSnapshot& snapshot) {
  std::vector<SnapshotEntry> entries = EntriesOf(snapshot);
  absl::c_sort(entries, [](const SnapshotEntry& a, const SnapshotEntry& b) { return a.key < b.key; });
  VariablesDigest digest;
  for (const SnapshotEntry& entry : entries) {
    digest.Begin(entry.key, entry.dtype, entry.shape.dims(), entry.bytes);
    digest.AddContent(BytesOf(snapshot, entry));
  }
  return digest.Hex();
}

// Returns the CheckpointDigest of a checkpoint of the tensors.
std::string DigestOf(const std::map<std::string, Tensor>& tensors) {
  VariablesDigest digest;
  for (const auto& [name, tensor] : tensors) {
    digest.Begin(name, tensor.dtype(), tensor.shape().dims(), tensor.bytes().size());
    digest.AddContent(tensor.bytes());
  }
  return digest.Hex();
}

absl::Status ReplaySteps(RunReplay::Options options, const ReplayRequest& request, std::ostream& out) {
  FileSystem* const fs = options.fs;
  absl::Status differs;
  options.on_step = [&](const RunReplay::Step& step) {
    out << "step " << step.step << "  loss " << LossText(step.mean_loss) << (step.skipped ? "  skipped" : "");
    if (step.checkpoint && !step.difference) out << "  the same bits as " << *step.checkpoint;
    if (step.difference) {
      const std::string what = absl::StrCat("differs from ", *step.checkpoint, " in ", *step.difference);
      out << "  " << what;
      // Not DataLoss, because that exits with code 2, which means that a file is damaged.
      differs.Update(absl::InternalError(absl::StrCat("step ", step.step, " ", what)));
    }
    out << std::endl;
  };
  ASSIGN_OR_RETURN(const auto replay, RunReplay::Open(std::move(options)));
  RETURN_IF_ERROR(replay->ComputeSteps(request.steps->first, request.steps->second));
  const VariableSnapshot snapshot = replay->TakeSnapshot();
  out << "computed from " << replay->checkpoint() << "; step " << request.steps->second << " has the digest "
      << DigestOf(snapshot) << std::endl;
  if (!request.dump.empty()) {
    ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, request.dump));
    RETURN_IF_ERROR(WriteSnapshot(snapshot, writer.get()));
    RETURN_IF_ERROR(writer->Finish());
    out << "wrote " << request.dump << std::endl;
  }
  return differs;
}

absl::Status ReplaySlot(RunReplay::Options options, const ReplayRequest& request, std::ostream& out) {
  FileSystem* const fs = options.fs;
  ASSIGN_OR_RETURN(const auto replay, RunReplay::Open(std::move(options)));
  ASSIGN_OR_RETURN(const RunReplay::Slot slot, replay->ComputeSlot(request.step, request.slot));
  out << "step " << request.step << "  slot " << request.slot << "  loss " << LossText(slot.loss);
  if (slot.weight != 1) out << "  weight " << LossText(slot.weight);
  out << "\n"
      << slot.batch << ", with the values of step " << slot.values_step << ", computed from " << replay->checkpoint()
      << "\n";
  std::vector<VariableRow> rows;
  for (const auto& [name, tensor] : slot.tensors) {
    rows.push_back({name, std::string(NameOf(tensor.dtype())), tensor.shape().ToString(), tensor.bytes().size(),
                    tensor.dtype() == v1::DT_FLOAT ? StatisticsOf(tensor) : absl::nullopt});
  }
  PrintVariableTable(rows, out);
  std::map<std::string, Tensor> tensors(slot.tensors.begin(), slot.tensors.end());
  tensors.emplace("loss", Tensor::FromValues<float>(Shape(), {slot.loss}));
  out << "digest " << DigestOf(tensors) << std::endl;
  if (request.dump.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, request.dump));
  for (const auto& [name, tensor] : tensors) {
    RETURN_IF_ERROR(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()));
  }
  RETURN_IF_ERROR(writer->Finish());
  out << "wrote " << request.dump << std::endl;
  return absl::OkStatus();
}

}  // namespace

absl::Status Replay(const ReplayRequest& request, RunReplay::Options options, std::ostream& out) {
  options.logdir = request.logdir;
  options.set = request.set;
  return request.steps ? ReplaySteps(std::move(options), request, out) : ReplaySlot(std::move(options), request, out);
}

int ReplayExitCode(const absl::Status& status, std::ostream& err) {
  if (status.ok()) return kExitDone;
  return PrintError(kReplayCommand, status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
