#include "lockstep/server/chief/checkpoint/restore.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/num_processors.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/ps/memory_limit.h"

namespace lockstep {
namespace {

// Maximum number of threads that read a checkpoint. More threads do not read faster, even from memory.
constexpr int kMostReaders = 8;
constexpr int64_t kParallelElements = 4 << 20;
// Maximum size of a protobuf message.
constexpr uint64_t kMostStateBytes = std::numeric_limits<int32_t>::max();

// Creates the store of a model that fits into memory with `brought_values` (VariableStore::MemoryUse).
absl::Status CreateStore(const RestoreOptions& options, const v1::ModelSpec& model, bool brought_values,
                         RestoredVariables* restored) {
  const config::v1::RunSpec& config = options.config;
  ASSIGN_OR_RETURN(auto store, VariableStore::Create(model, config.optimizer(), CompressionOf(config.compression()),
                                                     config.training().replicas_to_aggregate(), options.share_memory,
                                                     config.cluster().max_partial_sums()));
  FileSystem* const fs = options.fs != nullptr ? options.fs : FileSystem::Real();
  const MemoryLimit limit = FindMemoryLimit(fs, PhysicalMemory());
  VariableStore::MemoryUse use;
  use.saves = !options.logdir.empty();
  use.staged_contributions = StagedContributions(config, store->gradient_bytes());
  use.brought_values = brought_values;
  RETURN_IF_ERROR(store->CheckMemory(use, limit));
  use.brought_values = false;
  use.reads = true;
  const absl::Status reads = store->CheckMemory(use, limit);
  if (!reads.ok()) {
    restored->read_memory = absl::FailedPreconditionError(absl::StrCat("no memory for a read: ", reads.message()));
    use.reads = false;
  }
  restored->memory_needed = store->MemoryNeeded(use) + VariableStore::kProcessBytes;
  restored->memory_limit = limit.bytes;
  restored->store = std::move(store);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadStreamPositions(const BundleReader& reader) {
  std::vector<int64_t> positions;
  if (!reader.Contains(kStreamPositionsKey)) return positions;
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat("checkpoint ", reader.prefix(), ": ", kStreamPositionsKey, " has no positions of input streams"));
  ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader.Describe(kStreamPositionsKey));
  if (entry.dtype != v1::DT_INT64 || entry.bytes > kMostStateBytes) return damaged;
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kStreamPositionsKey));
  for (const int64_t position : tensor.flat<int64_t>()) {
    if (position < 0) return damaged;
    positions.push_back(position);
  }
  return positions;
}

// Returns an error if the run's workers read input streams and the checkpoint lacks their positions.
absl::Status CheckStreamPositions(const RestoreOptions& options, const RestoredVariables& restored) {
  const bool lacks = ReadsStreams(options.config.training()) && restored.stream_positions.empty();
  if (!lacks || restored.store->step() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("checkpoint ", *restored.checkpoint, " has no ", kStreamPositionsKey, ", which a run with policy ",
                   PolicyName(options.config.training()),
                   " continues from; start another run from its weights, with a logdir of its own and checkpoint { "
                   "warm_start: \"",
                   *restored.checkpoint, "\" }"));
}

// Returns null if threads are not available, or if one thread reads the model as fast as it takes to start others.
std::unique_ptr<ThreadPool> NewReaders(const RestoreOptions& options, const ParameterLayout& layout) {
  const int readers = std::min(kMostReaders, NumProcessors());
  if (layout.flat_elements() < kParallelElements || readers < 2) return nullptr;
  // The calling thread is one of the readers.
  return ThreadPool::Try(readers - 1, options.executor);
}

// Restores the newest checkpoint. `restored->checkpoint` stays absent if there is none.
absl::Status Restore(const RestoreOptions& options, RestoredVariables* restored) {
  VariableStore* const store = restored->store.get();
  const std::unique_ptr<ThreadPool> readers = NewReaders(options, store->layout());
  // The state in the checkpoint that was read last. An error in the state does not count as damage to the checkpoint.
  absl::StatusOr<v1::SessionState> session_state;
  absl::StatusOr<std::vector<int64_t>> stream_positions;
  const auto read = [&](const BundleReader& reader) {
    const absl::optional<int64_t> at = options.may_lack_state_at;
    const bool may_lack_state = at && StepOfCheckpoint(reader.prefix()) == at;
    RETURN_IF_ERROR(store->Restore(reader, readers.get(), may_lack_state));
    session_state = ReadSessionState(reader);
    stream_positions = ReadStreamPositions(reader);
    return absl::OkStatus();
  };
  const auto report = [restored](const std::string& prefix, const absl::Status& why) {
    const bool damaged = !absl::IsFailedPrecondition(why);
    LOG(WARNING) << "checkpoint " << prefix << " is " << (damaged ? "damaged and " : "")
                 << "skipped: " << why.message();
    if (damaged) restored->damaged.emplace_back(prefix, why);
  };
  ASSIGN_OR_RETURN(
      const absl::optional<std::string> newest,
      ReadNewestCheckpoint(options.fs, options.logdir, read, report, CheckpointsOf::kRun, options.checkpoint_basename));
  if (!newest) return absl::OkStatus();
  ASSIGN_OR_RETURN(restored->session_state, std::move(session_state));
  ASSIGN_OR_RETURN(restored->stream_positions, std::move(stream_positions));
  LOG(INFO) << "restored step " << store->step() << " from " << *newest;
  restored->checkpoint = newest;
  return CheckStreamPositions(options, *restored);
}

}  // namespace

absl::StatusOr<v1::SessionState> ReadSessionState(const BundleReader& reader) {
  v1::SessionState state;
  if (!reader.Contains(kSessionStateKey)) return state;
  const auto damaged = [&reader] {
    return absl::DataLossError(
        absl::StrCat("checkpoint ", reader.prefix(), ": ", kSessionStateKey, " is no such state"));
  };
  ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader.Describe(kSessionStateKey));
  // Checks the size before memory is allocated.
  if (entry.dtype != v1::DT_UINT8 || entry.bytes == 0 || entry.bytes > kMostStateBytes) return damaged();
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kSessionStateKey));
  const absl::Span<const uint8_t> bytes = tensor.flat<uint8_t>();
  return state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ? absl::StatusOr<v1::SessionState>(state)
                                                                            : damaged();
}

absl::StatusOr<RestoredVariables> RestoreOrInitialize(const RestoreOptions& options, const v1::ModelSpec& model) {
  RestoredVariables restored;
  RETURN_IF_ERROR(CreateStore(options, model, /*brought_values=*/false, &restored));
  if (!options.logdir.empty()) {
    RETURN_IF_ERROR(Restore(options, &restored));
    if (restored.checkpoint) return restored;
  }
  restored.store->Initialize(options.config.training().seed());
  const config::v1::CheckpointConfig& checkpoint = options.config.checkpoint();
  if (!checkpoint.warm_start().empty()) {
    ASSIGN_OR_RETURN(const WarmStart start, OpenWarmStart(options.fs, checkpoint, model));
    RETURN_IF_ERROR(restored.store->WarmStart(*start.checkpoint, start.plan));
    LOG(INFO) << start.plan.report;
  }
  if (options.initialize) {
    ASSIGN_OR_RETURN(const std::vector<AssignedValue> values, options.initialize(model));
    RETURN_IF_ERROR(restored.store->Assign(values));
  }
  restored.store->StartStateAtValues();
  return restored;
}

absl::Status CheckBroughtValuesFit(const RestoreOptions& options, const v1::ModelSpec& model) {
  RestoredVariables unused;
  return CreateStore(options, model, /*brought_values=*/true, &unused);
}

}  // namespace lockstep
