#include "lockstep/train/replay/run_replay.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/chief/checkpoint/restore.h"
#include "lockstep/server/chief/run/run_contract.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/ps/versions/read_variable.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"
#include "lockstep/server/sync/shard/staged_contribution.h"
#include "lockstep/train/replay/recorded_settings.h"
#include "lockstep/worker/session/workload/model_parts.h"

namespace lockstep {
namespace {

Tensor Floats(const Shape& shape, absl::Span<const float> values) { return Tensor::FromValues<float>(shape, values); }

}  // namespace

absl::StatusOr<std::unique_ptr<RunReplay>> RunReplay::Open(Options options) {
  ASSIGN_OR_RETURN(absl::optional<v1::RunRecord> record, ReadRunRecord(options.fs, options.logdir, options.set));
  if (!record) {
    return absl::NotFoundError(absl::StrCat(options.logdir, " is not a run's logdir: it has no ", kRunRecordFile));
  }
  // The record's file and the overrides may contain invalid values.
  RETURN_IF_ERROR(ValidateRunSpec(record->config()));
  if (!record->has_model())
    return absl::NotFoundError(absl::StrCat("the run of ", options.logdir, " has no model yet"));
  RETURN_IF_ERROR(CheckSameArithmetic(options.fs, options.logdir, *record));
  if (record->has_framework() && !options.has_framework) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the gradients of this run are computed by ", absl::CHexEscape(record->framework().name()),
        ", not by Lockstep; the program that computes them follows \"--\": lockstep replay ... -- python train.py"));
  }
  std::unique_ptr<RunReplay> replay(new RunReplay(std::move(options), *std::move(record)));
  const config::v1::RunSpec& config = replay->record_.config();
  ASSIGN_OR_RETURN(replay->store_, VariableStore::Create(replay->record_.model(), config.optimizer(),
                                                         CompressionOf(config.compression()), replay->slots(),
                                                         /*share_values=*/false, config.cluster().max_partial_sums()));
  replay->computer_ = std::make_unique<ContributionComputer>(&replay->store_->layout(), replay->options_.make_workload);
  RETURN_IF_ERROR(replay->CheckProgram());
  RETURN_IF_ERROR(replay->FindCheckpoints());
  return replay;
}

bool RunReplay::has_order() const { return ReadsStreams(record_.config().training()); }

absl::Status RunReplay::CheckProgram() {
  RETURN_IF_ERROR(computer_->SetConfig(record_.config()));
  const Workload& workload = computer_->workload();
  v1::OpenSessionRequest declared;
  declared.set_worker("this program");
  *declared.mutable_model() = workload.model->spec();
  for (v1::NamedDigest& part : ModelParts(record_.config(), *workload.model)) {
    *declared.add_model_part() = std::move(part);
  }
  if (workload.data) *declared.mutable_data() = *workload.data;
  if (workload.framework) *declared.mutable_framework() = *workload.framework;
  const absl::Status checked = RunContract(record_).Check(declared);
  if (checked.ok() || options_.has_framework || FirstDifference(record_.model(), declared.model()).empty()) {
    return checked;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(checked.message(), "; --program=//FOLDER:TARGET names a program that links the run's model"));
}

absl::Status RunReplay::FindCheckpoints() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.fs->ListDirectory(options_.logdir));
  for (absl::string_view name : names) {
    if (!absl::ConsumeSuffix(&name, ".index")) continue;
    const absl::optional<int64_t> step = StepOfCheckpoint(name);
    const std::string prefix = JoinPath(options_.logdir, name);
    if (!step) continue;
    const auto reader = BundleReader::Open(options_.fs, prefix);
    if (reader.ok() && !(*reader)->written_by_saver()) checkpoints_[*step] = prefix;
  }
  return absl::OkStatus();
}

absl::Status RunReplay::ReadOrder(int64_t last) {
  const int64_t first = checkpoints_.begin()->first;
  ASSIGN_OR_RETURN(order_, RecordedOrder::Read(options_.fs, options_.logdir, record_.run_id(), first, last));
  int64_t needed = last;
  needed_[last] = last;
  for (int64_t step = last; step > first; --step) {
    const auto arrivals = order_->ArrivalsOf(step, slots());
    if (!arrivals.ok()) {
      order_end_ = arrivals.status();
      break;
    }
    for (const v1::Arrival& arrival : *arrivals) needed = std::min(needed, arrival.values_step());
    needed_[step - 1] = needed;
  }
  return absl::OkStatus();
}

absl::Status RunReplay::Start(int64_t first, int64_t last) {
  absl::Status why = absl::NotFoundError(absl::StrCat(options_.logdir, " has no checkpoint at or before step ", first));
  if (checkpoints_.empty() || checkpoints_.begin()->first > first) return why;
  if (has_order()) RETURN_IF_ERROR(ReadOrder(last));
  for (auto it = checkpoints_.upper_bound(first); it != checkpoints_.begin();) {
    --it;
    const auto& [step, prefix] = *it;
    if (has_order()) {
      const auto needed = needed_.find(step);
      if (needed == needed_.end()) return order_end_;
      if (needed->second < step) {
        why = absl::NotFoundError(absl::StrCat(
            "a contribution to a step after ", step, " was computed with the values of step ", needed->second,
            ", and no earlier checkpoint serves: steps are computed again from the checkpoint of step 0, or from one "
            "that a chief was started with, if they are kept (checkpoint { keep: 0 })"));
        continue;
      }
    }
    const absl::Status restored = Restore(step, prefix);
    if (!absl::IsDataLoss(restored)) return restored;
    why = restored;
  }
  return why;
}

absl::Status RunReplay::Restore(int64_t step, const std::string& prefix) {
  for (const v1::RunRecord::ProgramChange& change : record_.program_change()) {
    if (change.step() <= step) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the program was changed at step ", change.step(), ": it ", change.what()));
  }
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(options_.fs, prefix));
  const bool may_lack_state = record_.has_finished_step() && record_.finished_step() == step;
  RETURN_IF_ERROR(store_->Restore(*reader, /*pool=*/nullptr, may_lack_state));
  ASSIGN_OR_RETURN(const v1::SessionState state, ReadSessionState(*reader));
  assignments_ = state.assignments();
  checkpoint_ = prefix;
  StepShard::Options shard;
  const config::v1::TrainingConfig& training = record_.config().training();
  shard.skips_non_finite = training.skip_non_finite();
  shard.applies_sum = training.reduction() == config::v1::TrainingConfig::SUM;
  shard_ = std::make_unique<StepShard>(store_.get(), slots(), shard);
  KeepVersion();
  return absl::OkStatus();
}

absl::Status RunReplay::ComputeSteps(int64_t first, int64_t last) {
  RETURN_IF_ERROR(Start(first, last));
  return AdvanceTo(last, [&](const Step& step) {
    if (step.step > first && options_.on_step) options_.on_step(step);
  });
}

absl::Status RunReplay::AdvanceTo(int64_t last, const std::function<void(const Step&)>& on_step) {
  while (store_->step() < last) {
    Step step;
    RETURN_IF_ERROR(ComputeStep(&step));
    KeepVersion();
    RETURN_IF_ERROR(Compare(&step));
    on_step(step);
  }
  return absl::OkStatus();
}

absl::Status RunReplay::ComputeStep(Step* result) {
  RETURN_IF_ERROR(Assign());
  const int64_t step = store_->step();
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, ConfigAtStep(record_, step));
  RETURN_IF_ERROR(store_->SetOptimizer(config.optimizer()));
  const std::shared_ptr<StepSums> sums = shard_->Begin(step);
  for (int64_t slot = 0; slot < slots(); ++slot) {
    RETURN_IF_ERROR(Contribute(slot, sums.get()));
    const auto found = record_.config().training().skip_non_finite() ? absl::nullopt : sums->FindNonFinite({slot, 1});
    if (found) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ", found->what, " of step ", step + 1, " is not finite (slot ", slot, ")"));
    }
  }
  if (!sums->complete()) return absl::InternalError(absl::StrCat("step ", step + 1, " is not complete"));
  const StepShard::Committed committed = shard_->Commit();
  result->step = store_->step();
  result->mean_loss = committed.mean_loss;
  result->skipped = committed.skipped.has_value();
  return absl::OkStatus();
}

absl::Status RunReplay::Contribute(int64_t slot, StepSums* sums) {
  const int64_t step = store_->step();
  if (has_order()) {
    ASSIGN_OR_RETURN(const auto arrivals, order_->ArrivalsOf(step + 1, slot + 1));
    // Adds the contribution as the chief does: as a whole, in the slot that its position in the order of arrival
    // determines.
    StagedContribution staged;
    RETURN_IF_ERROR(ContributeArrival(arrivals[slot], &staged));
    staged.AddTo(slot, sums);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, ConfigAtStep(record_, step));
  RETURN_IF_ERROR(computer_->SetConfig(config));
  v1::Token token;
  token.set_step(step);
  token.set_first_slot(slot);
  token.set_slot_count(1);
  return computer_->Compute(token, store_->published(), store_->estimates(), sums);
}

v1::Token RunReplay::TokenOf(const v1::Arrival& arrival) const {
  v1::Token token;
  token.set_step(arrival.step() - 1);
  token.set_slot_count(1);
  token.set_values_step(arrival.values_step());
  token.set_stream(arrival.stream());
  token.set_position(arrival.position());
  return token;
}

absl::Status RunReplay::ContributeArrival(const v1::Arrival& arrival, StepSums* sums) {
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, ConfigAfterChanges(record_, arrival.changes()));
  RETURN_IF_ERROR(computer_->SetConfig(config));
  ASSIGN_OR_RETURN(auto values, FindVersion(arrival));
  return computer_->Compute(TokenOf(arrival), std::move(values), /*estimates=*/nullptr, sums);
}

absl::Status RunReplay::Assign() {
  const int64_t step = store_->step();
  const int64_t earlier = record_.earlier_assignments();
  std::vector<AssignedValue> values;
  int64_t assignments = assignments_;
  std::unique_ptr<BundleReader> reader;
  for (int64_t i = std::max<int64_t>(0, assignments_ - earlier); i < record_.assignment_size(); ++i) {
    const v1::RunRecord::Assignment& assignment = record_.assignment(static_cast<int>(i));
    if (assignment.step() > step) break;
    if (reader == nullptr) {
      const auto checkpoint = checkpoints_.find(step);
      if (checkpoint == checkpoints_.end() || assignment.step() < step) {
        return absl::NotFoundError(absl::StrCat("variables were set at step ", assignment.step(),
                                                ", and no checkpoint of that step has their values"));
      }
      ASSIGN_OR_RETURN(reader, BundleReader::Open(options_.fs, checkpoint->second));
    }
    for (const std::string& key : assignment.variable()) {
      ASSIGN_OR_RETURN(Tensor value, reader->Read(key));
      values.push_back({key, std::move(value)});
    }
    assignments = earlier + i + 1;
  }
  if (assignments == assignments_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::SessionState state, ReadSessionState(*reader));
  if (state.assignments() < assignments) {
    return absl::NotFoundError(absl::StrCat("variables were set at step ", step, " after ", reader->prefix(),
                                            " was written, which lacks their values"));
  }
  RETURN_IF_ERROR(store_->Assign(values));
  assignments_ = assignments;
  KeepVersion();
  return absl::OkStatus();
}

absl::Status RunReplay::Compare(Step* result) {
  const auto checkpoint = checkpoints_.find(store_->step());
  if (checkpoint == checkpoints_.end()) return absl::OkStatus();
  RETURN_IF_ERROR(Assign());  // the checkpoint contains these values
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(options_.fs, checkpoint->second));
  result->checkpoint = checkpoint->second;
  const VariableSnapshot snapshot = store_->TakeSnapshot();
  for (const SnapshotEntry& entry : EntriesOf(snapshot)) {
    ASSIGN_OR_RETURN(const Tensor recorded, reader->Read(entry.key));
    if (recorded.bytes() == BytesOf(snapshot, entry)) continue;
    result->difference = entry.key;
    break;
  }
  return absl::OkStatus();
}

void RunReplay::KeepVersion() {
  if (!has_order()) return;
  const int64_t step = store_->step();
  versions_[{step, assignments_}] = store_->published();
  const auto needed = needed_.find(step);
  if (needed == needed_.end()) return;
  versions_.erase(versions_.begin(), versions_.lower_bound({std::min(step, needed->second), 0}));
}

absl::StatusOr<std::shared_ptr<const PublishedValues>> RunReplay::FindVersion(const v1::Arrival& arrival) const {
  // Each assignment at a step creates another version of that step's values.
  auto version = versions_.upper_bound({arrival.values_step(), arrival.assignments()});
  if (version != versions_.begin()) --version;
  if (version != versions_.end() && version->first.first == arrival.values_step()) return version->second;
  return absl::NotFoundError(absl::StrCat("slot ", arrival.slot(), " of step ", arrival.step(),
                                          " was computed with values of step ", arrival.values_step(),
                                          " that no checkpoint leads to"));
}

absl::StatusOr<RunReplay::Slot> RunReplay::ComputeSlot(int64_t step, int64_t slot) {
  if (step < 1 || slot < 0 || slot >= slots()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no slot ", slot, " of step ", step, ": steps begin at 1, and each has ", slots()));
  }
  Slot result;
  result.values_step = step - 1;
  absl::optional<v1::Arrival> arrival;
  if (has_order()) {
    ASSIGN_OR_RETURN(const auto order,
                     RecordedOrder::Read(options_.fs, options_.logdir, record_.run_id(), step - 1, step));
    ASSIGN_OR_RETURN(const auto arrivals, order.ArrivalsOf(step, slot + 1));
    arrival = arrivals[slot];
    result.values_step = arrival->values_step();
    result.batch = absl::StrCat("batch ", arrival->position(), " of stream ", arrival->stream());
  } else {
    result.batch = absl::StrCat("the batch of slot ", slot, " of step ", step - 1);
  }
  RETURN_IF_ERROR(Start(result.values_step, result.values_step));
  RETURN_IF_ERROR(AdvanceTo(result.values_step, [](const Step&) {}));
  if (!arrival || arrival->assignments() > assignments_) RETURN_IF_ERROR(Assign());
  const bool sparse = !store_->estimates()->empty();
  KeptContribution kept(&store_->layout(), sparse ? store_->estimates()->at(slot).get() : nullptr);
  RETURN_IF_ERROR(arrival ? ContributeArrival(*arrival, &kept) : Contribute(slot, &kept));
  const int64_t batch_step = arrival ? arrival->position() : step - 1;
  RETURN_IF_ERROR(AddTensors(kept, batch_step, arrival ? arrival->stream() : slot, &result));
  return result;
}

absl::Status RunReplay::AddTensors(const KeptContribution& kept, int64_t step, int64_t slot, Slot* result) {
  result->loss = kept.report().loss();
  result->weight = kept.report().has_weight() ? kept.report().weight() : 1;
  const auto& variables = store_->layout().variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].spec.trainable()) continue;
    result->tensors.emplace_back(absl::StrCat("gradient/", variables[i].spec.name()),
                                 Floats(ShapeOf(variables[i].spec), kept.gradient(static_cast<int>(i))));
  }
  for (int i = 0; i < kept.report().update_size(); ++i) {
    const ParameterLayout::Variable& variable = variables[store_->layout().update_ops()[i].variable];
    const std::string& bytes = kept.report().update(i);
    Tensor update(variable.spec.dtype(), Shape({variable.elements}));
    std::copy(bytes.begin(), bytes.end(), update.data());
    result->tensors.emplace_back(absl::StrCat("update/", i), std::move(update));
  }
  ASSIGN_OR_RETURN(const Batch batch, BatchOf(computer_->workload(), step, slot));
  const std::pair<const char*, const Tensor*> inputs[] = {
      {"input/features", &batch.features}, {"input/labels", &batch.labels}, {"input/weights", &batch.weights}};
  for (const auto& [name, tensor] : inputs) {
    if (tensor->num_elements() > 0) result->tensors.emplace_back(name, *tensor);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
