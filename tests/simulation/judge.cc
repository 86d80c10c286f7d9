#include "lockstep/tests/simulation/judge.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/sync/delivery/value_delivery.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr char kLogdir[] = "/logdir";
// Maximum time that a stop may take if nothing obstructs it, in addition to the computation in progress.
constexpr absl::Duration kStopLimit = absl::Seconds(2);
// The maximum time for which a chief may write after it has checked that it owns its directory.
constexpr absl::Duration kLookLimit = absl::Milliseconds(1);
// Maximum time that a stream may take to end, and the time that it waits for a peer that does not read
// (SimulatedChiefServer).
constexpr absl::Duration kEndLimit = absl::Milliseconds(500);
constexpr absl::Duration kUnreadLimit = absl::Seconds(1);
// The maximum time for which a chief may keep too many old versions.
constexpr absl::Duration kVersionsLimit = absl::Milliseconds(50);

std::string Since(Instant then, Instant now) { return absl::FormatDuration(absl::Nanoseconds(now - then)); }

}  // namespace

Judge::Judge(const Plan* plan, World* world, Disk* disk)
    : plan_(*plan), world_(world), disk_(disk), ledger_(world, disk, kLogdir, plan->config, plan->rules) {
  const config::v1::TrainingConfig& training = plan->config.training();
  if (ReadsStreams(training)) streams_ = std::make_unique<StreamLedger>(plan->config, plan->rules);
  if (training.async().has_max_staleness() && Stalls() == absl::ZeroDuration()) {
    staleness_ = std::make_unique<StalenessWatch>(training.async().max_staleness());
  }
}

void Judge::Fail(std::string what) {
  world_->transcript()->Add(world_->now(), "JUDGE", what);
  if (failure_.empty()) failure_ = std::move(what);
}

bool Judge::DiskWasBad(const Process* process) const { return !disk_->WasWellSince(process->started()); }

int64_t Judge::StepOnDisk() const {
  const LifeScheduler::Uninterrupted uninterrupted(world_->scheduler());
  const auto newest = LatestCheckpoint(disk_->memory(), kLogdir);
  if (!newest.ok() || !*newest) return -1;
  return StepOfCheckpoint(**newest).value_or(-1);
}

void Judge::OnServing(Process* chief, int64_t generation, int64_t step, const config::v1::RunSpec& config) {
  if (generation <= generation_ && !taken_over_) {
    Fail(absl::StrCat(chief->name(), " has generation ", generation, ", and there was ", generation_, " before"));
  }
  // A chief that was taken over may still be saving while its successor reads the disk.
  if (step < saved_step_ && !taken_over_) {
    Fail(absl::StrCat(chief->name(), " begins at step ", step, " although step ", saved_step_, " was saved"));
  }
  continued_ = continued_ || finished_;
  ledger_.set_config(config);
  ledger_.Restart(chief);
  announced_by_ = nullptr;
  const auto& assignments = ledger_.present().changes().assignments;
  const auto known = static_cast<int64_t>(acknowledged_assignments_.size());
  if (!taken_over_ &&
      (static_cast<int64_t>(assignments.size()) < known ||
       !std::equal(acknowledged_assignments_.begin(), acknowledged_assignments_.end(), assignments.begin()))) {
    Fail(absl::StrCat(chief->name(), " does not know of all ", known, " assignments that its program has made"));
  }
  if (!taken_over_ && !KnowsSettings()) {
    Fail(absl::StrCat(chief->name(), " does not know of all settings that its program has changed"));
  }
  acknowledged_ = static_cast<int64_t>(assignments.size());
  acknowledged_to_hooks_.clear();
  computed_.clear();
  measured_ = false;
  saved_assignments_ = 0;
  if (generation > generation_) {
    for (const auto& served : serving_) fenced_.insert(served.first);
    fenced_.erase(chief);
  }
  generation_ = std::max(generation_, generation);
  serving_[chief] = step;
  last_progress_ = world_->now();
  if (streams_ != nullptr && !taken_over_) BeginStreams(step);
  if (staleness_ != nullptr) staleness_->Forget();
}

void Judge::BeginStreams(int64_t step) {
  const LifeScheduler::Uninterrupted uninterrupted(world_->scheduler());
  absl::Status status;
  if (step <= 0) {
    status = streams_->Begin(nullptr);
  } else {
    const auto reader = BundleReader::Open(disk_->memory(), absl::StrCat(kLogdir, "/model.ckpt-", step));
    status = reader.ok() ? streams_->Begin(reader->get()) : reader.status();
  }
  if (!status.ok()) Fail(absl::StrCat("a chief begins at step ", step, ": ", status.message()));
}

absl::Status Judge::CheckCheckpoint(const BundleReader& reader, bool listed) {
  return streams_ != nullptr ? streams_->CheckCheckpoint(reader) : ledger_.CheckCheckpoint(reader, listed);
}

void Judge::OnFrame(const std::shared_ptr<Call>& stream, const StepFrame& frame) {
  framed_by_[stream->connection()->ends[Connection::kClient]] = stream;
  if (staleness_ != nullptr) staleness_->OnFrame(stream, frame);
}

void Judge::OnReply(Process* chief, const std::shared_ptr<Call>& stream, const StepReplyFrame& reply) {
  CheckStaleness();
  if (staleness_ != nullptr) staleness_->OnReply(stream, reply, world_->now());
  // A frame with constant variables keeps no version alive.
  const bool has_version = reply.values.empty() || !IsConstant(reply.values.front().variable);
  if (reply.values_owner != nullptr && has_version) {
    lent_.push_back({chief, reply.values_step, reply.values_owner});
  }
  if (!reply.token) return;
  int64_t* const step = &serving_[chief];
  if (reply.token->step() >= ledger_.recorded_end() && !taken_over_ && !continued_) {
    Fail(absl::StrCat(chief->name(), " gives a token of step ", reply.token->step(), " although the run was to end at ",
                      ledger_.recorded_end()));
  }
  // In a run of streams, a token may be older than the values sent with it, and may follow a newer token.
  int64_t at = reply.token->step();
  if (streams_ != nullptr) {
    if (!taken_over_) streams_->OnToken(*reply.token);
    if (reply.token->has_values_step()) at = std::max(at, reply.token->values_step());
    at = std::max(at, *step);
  }
  if (at < *step) {
    Fail(absl::StrCat(chief->name(), " gives a token of step ", at, " after one of step ", *step));
  }
  if (at == *step) return;
  steps_ += streams_ != nullptr ? at - std::max<int64_t>(*step, 0) : 1;
  measured_ = *step >= 0;  // otherwise it is only now learning its model
  *step = at;
  OnCommitted(*step);
  last_progress_ = world_->now();
}

void Judge::OnCommitted(int64_t step) {
  while (!computed_.empty() && computed_.begin()->first < step) {
    for (const auto& [slot, workers] : computed_.begin()->second) {
      if (workers.size() == 1) brought_at_[*workers.begin()].push_back(world_->now());
    }
    computed_.erase(computed_.begin());
  }
}

void Judge::OnChanged(Process* chief, const RunChanges::Settings& settings) {
  ledger_.Learn();
  acknowledged_settings_.push_back(settings);
  if (!taken_over_ && !KnowsSettings()) {
    Fail(absl::StrCat(chief->name(), " says that settings were changed, and it is not on record"));
  }
}

bool Judge::KnowsSettings() const {
  const auto& present = ledger_.recorded().settings;
  return std::all_of(acknowledged_settings_.begin(), acknowledged_settings_.end(), [&](const auto& settings) {
    return std::any_of(present.begin(), present.end(), [&](const auto& each) { return each.second == settings; });
  });
}

void Judge::OnHooksSee(Process* chief, int64_t step) {
  // The limit of session.h, 64 steps, plus the step in progress.
  constexpr int64_t kMaxLag = 65;
  const auto serving = serving_.find(chief);
  if (serving == serving_.end() || serving->second <= step + kMaxLag) return;
  Fail(absl::StrCat(chief->name(), ": its hooks see step ", step, ", and the run is at ", serving->second));
}

void Judge::OnHooksEnd(Process* chief, int64_t step) {
  // If an earlier incarnation of the chief recorded the end, this incarnation saves that step as its last.
  if (ended_by_hook_ == chief) hooks_end_ = step;
}

void Judge::OnWaited(Process* chief, const absl::Status& status, int64_t step) {
  waited_[chief] = step;
  ended_[chief] = status;
  const auto serving = serving_.find(chief);  // absent if the chief could not listen
  if (serving != serving_.end() && step < serving->second) {
    Fail(absl::StrCat(chief->name(), " ends at step ", step, " although it gave tokens of step ", serving->second));
  }
}

void Judge::OnSlot(Process* worker, const SlotKey& key, VariableValues values) {
  world_->transcript()->Add(world_->now(), worker->name(), "computes step ", key.step, " slot ", key.slot);
  if (streams_ != nullptr) {
    if (taken_over_) return;
    const absl::Status status = streams_->OnComputing(key, values);
    if (!status.ok()) Fail(absl::StrCat(worker->name(), " computes with other values: ", status.message()));
    return;
  }
  if (key.step == 0 && key.slot == 0 && ledger_.AreCanaryValues(values)) return;
  std::vector<RunChanges::Assignment> assignments;
  computed_[key.step][key.slot].insert(worker);
  const absl::Status status = ledger_.CheckValues(key.step, values, &assignments);
  if (!status.ok()) Fail(absl::StrCat(worker->name(), " computes with other values: ", status.message()));
  if (taken_over_ || AreSaved(NewestByProgram(assignments))) return;
  ledger_.Learn();
  if (ledger_.CheckValues(key.step, values, &assignments).ok() && AreSaved(NewestByProgram(assignments))) return;
  Fail(absl::StrCat(worker->name(), " computes with variables that were set, and no checkpoint has them"));
}

int64_t Judge::NewestByProgram(const std::vector<RunChanges::Assignment>& assignments) const {
  auto newest = static_cast<int64_t>(assignments.size());
  while (newest > 0 && absl::c_linear_search(hook_assignments_, assignments[newest - 1])) --newest;
  return newest;
}

bool Judge::AreSaved(int64_t assignments) {
  if (assignments <= saved_assignments_) return true;
  const LifeScheduler::Uninterrupted uninterrupted(world_->scheduler());
  const auto newest = LatestCheckpoint(disk_->memory(), kLogdir);
  if (!newest.ok() || !*newest) return false;
  const auto reader = BundleReader::Open(disk_->memory(), **newest);
  if (!reader.ok()) return false;
  const auto state = SessionStateOf(**reader);
  if (state.ok()) saved_assignments_ = std::max(saved_assignments_, state->assignments());
  return assignments <= saved_assignments_;
}

void Judge::OnRead(Process* reader, int64_t step, absl::Span<const train::NamedTensor> values) {
  world_->transcript()->Add(world_->now(), reader->name(), "reads step ", step);
  if (streams_ != nullptr && taken_over_) return;
  const absl::Status status =
      streams_ != nullptr ? streams_->CheckNamed(step, values) : ledger_.CheckNamed(step, values);
  if (!status.ok()) Fail(absl::StrCat(reader->name(), " reads other values: ", status.message()));
}

void Judge::OnHookAssigns(Process* chief, const RunChanges::Assignment& assignment) {
  hook_assignments_.push_back(assignment);
  const bool news = ledger_.Expect(chief, assignment);
  if (ledger_.Serves(chief)) announced_by_ = news ? chief : nullptr;
}

void Judge::OnHookChanges(Process* chief, int64_t step, const RunChanges::Settings& settings) {
  const bool news = ledger_.Expect(chief, step, settings);
  if (ledger_.Serves(chief)) announced_by_ = news ? chief : nullptr;
}

void Judge::OnHookFailed(Process* chief) {
  if (announced_by_ != chief) return;
  announced_by_ = nullptr;
  ledger_.Retract();
}

void Judge::OnAssigned(Process* chief, bool by_hook) {
  if (by_hook) {
    // An assignment made by a hook in an earlier incarnation is not repeated.
    if (announced_by_ != chief) return;
    ++acknowledged_;
    acknowledged_to_hooks_.push_back(hook_assignments_.back());
    return;
  }
  ledger_.Learn();
  ++acknowledged_;
  const auto& assignments = ledger_.recorded().assignments;
  const auto recorded = static_cast<int64_t>(assignments.size());
  // The next checkpoint records the assignments that hooks have made in the meantime.
  const int64_t by_hooks = static_cast<int64_t>(ledger_.present().changes().assignments.size()) - recorded;
  // A hook's assignment may equal a program's at the same step. The ledger treats them as one.
  const auto equal = absl::c_count_if(acknowledged_to_hooks_, [&](const RunChanges::Assignment& assignment) {
    return absl::c_linear_search(assignments, assignment);
  });
  const int64_t due = std::max<int64_t>(0, acknowledged_ - by_hooks - equal);
  if (recorded >= due) {
    acknowledged_assignments_.assign(assignments.begin(), assignments.begin() + due);
    if (taken_over_ || AreSaved(due)) return;
    return Fail(absl::StrCat(chief->name(), " says that variables were set, and no checkpoint has them"));
  }
  if (!taken_over_) Fail(absl::StrCat(chief->name(), " says that variables were set, and it is not on record"));
}

void Judge::CheckEnd(const std::string& what) {
  if (taken_over_ || continued_) return;
  ledger_.Learn();
  const int64_t step = StepOnDisk();
  const int64_t due = ledger_.present().LastStep();
  const int64_t recorded = ledger_.recorded_end();
  if (step > due || step > recorded || (step < std::min(due, recorded) && !end_wanted_with_block_)) {
    return Fail(absl::StrCat(what, ", step ", step, " is saved; it was to end at ", std::min(due, recorded)));
  }
  const bool asked = end_wanted_ || end_wanted_with_block_ || (step == recorded && ledger_.WasDue(step));
  if (step < due && !asked) {
    return Fail(absl::StrCat(what, " at step ", step, " of ", due, ", which was not requested"));
  }
  const auto& assignments = ledger_.present().changes().assignments;
  // Hooks choose what to assign by the step alone, so they must not make the same assignment twice.
  for (size_t i = 1; i < assignments.size() && !assignment_wanted_; ++i) {
    if (!(assignments[i] == assignments[i - 1])) continue;
    Fail(absl::StrCat(what, ", and hooks have set variables twice after step ", assignments[i].step));
  }
  for (const int64_t assign_at : plan_.rules.assign_at) {
    if (plan_.rules.assigns_by_chance) break;
    const bool done = std::any_of(assignments.begin(), assignments.end(),
                                  [assign_at](const auto& assignment) { return assignment.step == assign_at; });
    if (assign_at < step && !done) Fail(absl::StrCat(what, ", and nothing was set after step ", assign_at));
  }
}

bool Judge::EndIsRecorded() {
  ledger_.Learn();
  const int64_t step = StepOnDisk();
  const bool bounded = !plan_.config.training().unbounded();
  return (bounded && step >= plan_.steps) || step >= ledger_.recorded_end();
}

void Judge::OnWorkerEnded(Process* worker, const absl::Status& status) { ended_[worker] = status; }

void Judge::OnLog(const Process* process, absl::string_view line) {
  if (absl::ConsumePrefix(&line, "saved ")) {
    if (const auto step = StepOfCheckpoint(line)) saved_step_ = std::max(saved_step_, *step);
    CheckSaved(std::string(line));
  } else if (absl::StrContains(line, "variables were set at step ")) {
    ledger_.Learn(/*durable=*/false);  // the record has the assignment, and the next incarnation drops it
  } else if (absl::ConsumePrefix(&line, "the run is to end at step ")) {
    ledger_.Learn();
    if (absl::StrContains(line, ": hook ")) ended_by_hook_ = process;
    int64_t end = 0;
    const bool parsed = absl::SimpleAtoi(line.substr(0, line.find(':')), &end);
    // An end at the configured last step needs no record.
    if (!taken_over_ && (!parsed || (ledger_.recorded_end() > end && end < plan_.steps))) {
      Fail(absl::StrCat("the run is to end at step ", end, ", and that is not on record"));
    }
  } else if (const size_t silent = line.find(" was silent for "); silent != absl::string_view::npos) {
    if (staleness_ != nullptr) staleness_->Forget();
    CheckSilent(process, line.substr(0, silent));
  } else if (absl::ConsumePrefix(&line, "checkpoint ") && absl::StrContains(line, " is damaged")) {
    reported_damaged_.emplace(line.substr(0, line.find(' ')));
    // No fault damages files, but a power cut may leave a deletion half done.
    if (!absl::StrContains(line, " is missing") && !taken_over_) Fail(absl::StrCat("a checkpoint was damaged: ", line));
  }
}

void Judge::CheckSaved(const std::string& prefix) {
  const LifeScheduler::Uninterrupted uninterrupted(world_->scheduler());
  const auto reader = BundleReader::Open(disk_->memory(), prefix);
  if (!reader.ok() || taken_over_) return;  // the checkpoint may already be deleted
  absl::Status status = CheckCheckpoint(**reader, /*listed=*/false);
  if (status.ok()) status = ledger_.CheckRecorded(**reader);
  if (!status.ok()) Fail(absl::StrCat("checkpoint ", prefix, " was saved: ", status.ToString()));
}

void Judge::OnRename(const Process* process, absl::string_view names) {
  const auto lost = logdir_lost_.find(process);
  if (lost == logdir_lost_.end()) return;
  // The program has started another incarnation of the chief.
  if (absl::EndsWith(names, "/generation")) logdir_lost_.erase(lost);
  if (logdir_lost_.count(process) == 0 || !disk_->WasWellSince(lost->second)) return;
  // Only these renames are checked: writing a checkpoint's data takes a long time, and the chief checks its lock again
  // before it lists the checkpoint.
  if (!absl::EndsWith(names, "/checkpoint") && !absl::EndsWith(names, "/lockstep.textproto")) return;
  const Instant since = std::max(lost->second, process->thawed_at);
  if (absl::Nanoseconds(world_->now() - since) < kLookLimit + Stalls()) return;
  Fail(absl::StrCat(process->name(), " renames ", names, " ", Since(lost->second, world_->now()),
                    " after it has lost its directory"));
}

void Judge::OnRenamed(const Process* process, absl::string_view name) {
  if (Dirname(name) != kLogdir) return;
  // The program has started another incarnation of the chief.
  if (Basename(name) == "generation") fenced_.erase(process);
  if (fenced_.count(process) > 0) Fail(absl::StrCat(process->name(), " publishes ", name, ", and has a successor"));
}

void Judge::CheckStaleness() {
  if (staleness_ == nullptr) return;
  const std::string wrong = staleness_->Check(world_->now());
  if (!wrong.empty()) Fail(wrong);
}

void Judge::CheckSilent(const Process* chief, absl::string_view worker) {
  // If threads stall, time passes between the decision and its log line.
  if (Stalls() > absl::ZeroDuration() || chief->longest_freeze > absl::ZeroDuration()) return;
  const auto is_it = [worker](const Process* process) {
    return absl::StrCat(process->name(), " on ", process->host()->name) == worker;
  };
  // The line may refer to another stream of the same worker, or to an earlier worker with the same name.
  int streams = 0;
  std::shared_ptr<Call> open;
  for (const auto& connection : world_->network()->connections()) {
    if (!is_it(connection->ends[Connection::kClient]) || connection->ends[Connection::kServer] != chief) continue;
    for (const auto& call : connection->calls) {
      if (call->method() != "Step" || call->server == nullptr) continue;
      ++streams;
      open = call;
    }
  }
  if (streams != 1) return;
  const Instant now = world_->now();
  for (const auto& [process, at] : contributed_at_) {
    const auto stream = framed_by_.find(process);
    if (!is_it(process) || at >= now || stream == framed_by_.end() || stream->second.lock() != open) continue;
    if (absl::Nanoseconds(now - at) >= absl::Seconds(plan_.config.cluster().lease_seconds())) continue;
    Fail(absl::StrCat(chief->name(), " says that ", worker, " was silent, and took a frame of it ", Since(at, now),
                      " before"));
  }
}

void Judge::OnStreamOver(std::shared_ptr<Call> call, std::shared_ptr<Call> successor) {
  // A replaced stream does not wait for its reader, unless a change to the run had already ended it.
  const bool at_once = successor != nullptr && !plan_.rules.followed;
  const absl::Duration limit = at_once ? kEndLimit : kUnreadLimit + kEndLimit;
  streams_over_.push_back({std::move(call), std::move(successor), limit, world_->now()});
}

void Judge::CheckKept(const Process* chief, bool healthy) {
  const Instant now = world_->now();
  for (auto it = streams_over_.begin(); it != streams_over_.end();) {
    const Connection& connection = *it->call->connection();
    const auto is_over = [](const Call& call) { return call.status || call.server == nullptr; };
    // Two threads of the chief may handle the first frames of two streams in the opposite order.
    const int64_t place = it->successor == nullptr ? 0 : it->successor->place;
    const bool reversed = place > 0 && (it->call->place == 0 || it->call->place > place);
    // A stream that the chief refused because there were too many calls at once does not replace another.
    const bool refused = it->successor != nullptr && place == 0;
    if (is_over(*it->call) || ((reversed || refused) && is_over(*it->successor)) ||
        connection.ends[Connection::kServer] != chief) {
      it = streams_over_.erase(it);
      continue;
    }
    if (!healthy || !world_->network()->passes(connection)) it->since = now;
    if (absl::Nanoseconds(now - it->since) > it->limit + Stalls()) {
      return Fail(
          absl::StrCat(chief->name(), " keeps a stream for ", Since(it->since, now), " that is over and is not read"));
    }
    ++it;
  }
  // In a run of streams, each worker with a running lease may keep the version for its stream's batch.
  if (!healthy || streams_ != nullptr) {
    keeps_too_many_since_ = kNever;
    return;
  }
  std::set<int64_t> old;
  for (auto it = lent_.begin(); it != lent_.end();) {
    if (it->values.expired() || it->chief != chief) {
      it = lent_.erase(it);
      continue;
    }
    if (it->step < serving_[chief]) old.insert(it->step);
    ++it;
  }
  if (plan_.old_version_bytes > 0 || old.size() <= kMinOldVersions) {
    keeps_too_many_since_ = kNever;
  } else if (keeps_too_many_since_ == kNever) {
    keeps_too_many_since_ = now;
  } else if (absl::Nanoseconds(now - keeps_too_many_since_) > kVersionsLimit + Stalls()) {
    Fail(absl::StrCat(chief->name(), " keeps ", old.size(), " old versions for peers that do not read"));
  }
}

void Judge::OnChiefExit(Process* chief) {
  const Exit exit = *chief->exit();
  const std::string what =
      absl::StrCat(chief->name(), " ends with exit code ", exit.code, " (", ended_[chief].ToString(), ")");
  if (exit.killed) {
    // If the chief had notified every worker and recorded this before it was killed, the run is finished, and a later
    // start continues a finished run.
    ledger_.Learn(/*durable=*/false);
    if (ledger_.finished()) {
      finished_ = true;
      CheckEnd(absl::StrCat(chief->name(), " has ended"));
    }
    return;
  }
  switch (exit.code) {
    case kExitDone:
      finished_ = true;
      CheckEnd(what);
      return;
    case kExitTerminated:
      if (chief->stopped_at() == kNever) Fail(absl::StrCat(what, " but was not stopped"));
      // At step 0 there is nothing to save.
      if (waited_.count(chief) > 0 && std::max<int64_t>(StepOnDisk(), 0) < waited_[chief] && !taken_over_) {
        Fail(absl::StrCat(what, " at step ", waited_[chief], ", but only step ", StepOnDisk(), " is saved"));
      }
      return;
    case kExitBadConfiguration:
      return Fail(absl::StrCat(what, " although its configuration is valid"));
    default:
      // Threads that are frozen or get no processor time may need longer than checkpoint.stop_seconds.
      if (absl::IsDeadlineExceeded(ended_[chief]) &&
          absl::Seconds(plan_.config.checkpoint().stop_seconds()) < Stalls() + chief->longest_freeze) {
        return;
      }
      // The disk may have refused the last step, or have been unreadable.
      if (!DiskWasBad(chief) && !rivals_) Fail(absl::StrCat(what, " and nothing was wrong with the disk"));
  }
}

void Judge::OnWorkerExit(Process* worker) {
  const Exit exit = *worker->exit();
  if (exit.killed) return;
  const absl::Status& status = ended_[worker];
  const std::string what =
      absl::StrCat(worker->name(), " ends with exit code ", exit.code, " (", status.ToString(), ")");
  if (exit.code == kExitDone) {
    if (!taken_over_ && !continued_ && !EndIsRecorded()) Fail(absl::StrCat(what, " before the run is over"));
  } else if (exit.code == kExitTerminated) {
    if (worker->stopped_at() == kNever) Fail(absl::StrCat(what, " but was not stopped"));
  } else if (exit.code == kExitRetryable) {
    const bool fruitless = absl::StrContains(status.message(), "has brought anything");
    Instant heard = worker->heard_at;
    if (fruitless) {
      // A worker learns that a slot was counted when the next token arrives on the same stream.
      const std::vector<Instant>& brought = brought_at_[worker];
      const auto unheard = std::lower_bound(brought.begin(), brought.end(), worker->told_at);
      heard = unheard == brought.begin() ? 0 : *std::prev(unheard);
    }
    heard = std::max(worker->started(), heard);
    const absl::Duration wait = absl::Seconds(plan_.config.cluster().chief_wait_seconds());
    if (absl::Nanoseconds(world_->now() - heard) < wait) {
      Fail(absl::StrCat(what, " ", Since(heard, world_->now()),
                        fruitless ? " after a slot of it was counted" : " after it heard of the chief"));
    }
  } else if (disk_->WasWellSince(0) && !taken_over_) {
    // With a bad disk, the address file may have been unreadable, or the run's last step not saved.
    Fail(what);
  }
}

void Judge::OnLauncherExit(Process* launcher) {
  const Exit exit = *launcher->exit();
  if (exit.killed || exit.code != kExitDone) return;
  if (!finished_) Fail(absl::StrCat(launcher->name(), " says that the run is over"));
}

absl::Duration Judge::Stalls() const {
  return (plan_.scheduler.stall_chance > 0 ? 40 : 0) * plan_.scheduler.longest_stall;
}

absl::Duration Judge::StepLimit() const {
  absl::Duration slowest;
  for (const absl::Duration time : plan_.slot_times) slowest = std::max(slowest, time + absl::Milliseconds(3));
  return absl::Milliseconds(50) + plan_.rules.hook_time +
         4 * static_cast<double>(plan_.config.training().replicas_to_aggregate()) * slowest + Stalls();
}

std::set<const Process*> Judge::ConnectedWith(const Process* chief) const {
  std::set<const Process*> connected;
  for (const auto& connection : world_->network()->connections()) {
    if (connection->ends[Connection::kServer] != chief || !world_->network()->passes(*connection)) continue;
    for (const auto& call : connection->calls) {
      if (call->method() == "Step" && !call->status && !call->broken) {
        connected.insert(connection->ends[Connection::kClient]);
      }
    }
  }
  return connected;
}

void Judge::CheckStopped(const Process* process, absl::Duration limit, bool healthy) {
  if (!process->alive() || process->stopped_at() == kNever) return;
  const Instant now = world_->now();
  const auto since = well_since_.emplace(process, now).first;
  if (!healthy || process->frozen()) since->second = now;
  const Instant from = std::max(since->second, process->stopped_at());
  if (absl::Nanoseconds(now - from) > limit) {
    Fail(absl::StrCat(process->name(), " was stopped ", Since(process->stopped_at(), now), " ago and is still there"));
  }
}

void Judge::Watch(Process* chief, const std::vector<Process*>& workers) {
  const Instant now = world_->now();
  if (staleness_ != nullptr) {
    // A frozen chief may have made its decision before it was frozen, and may announce it only afterwards.
    if (taken_over_ || chief == nullptr || chief->longest_freeze > absl::ZeroDuration()) staleness_->Forget();
    CheckStaleness();
  }
  const bool disk_is_well = disk_->WasWellSince(now - absl::ToInt64Nanoseconds(absl::Seconds(1)));
  if (chief != nullptr) CheckStopped(chief, kStopLimit + Stalls(), disk_is_well);
  const bool serves = chief != nullptr && chief->alive() && !chief->frozen() && serving_.count(chief) > 0 &&
                      waited_.count(chief) == 0 && chief->stopped_at() == kNever && !world_->network()->slow();
  CheckKept(chief, serves && disk_is_well);
  // The chief saves after the last step, and after each step that is followed by an assignment. With every_steps, other
  // steps wait until an earlier checkpoint is on disk.
  const bool last = serves && (plan_.may_be_ended || serving_[chief] + 1 >= ledger_.present().LastStep());
  const bool saves =
      serves && (last || plan_.rules.followed || plan_.config.checkpoint().every_steps() > 0) && !disk_is_well;
  const std::set<const Process*> streams = serves ? ConnectedWith(chief) : std::set<const Process*>();
  bool goes_on = false;
  for (Process* const worker : workers) {
    const bool connected = serves && worker->alive() && !worker->frozen() &&
                           now >= std::max(worker->hangs_until, worker->slow_until) && streams.count(worker) > 0;
    if (worker->stopped_at() != kNever) {
      CheckStopped(worker, kStopLimit + ProgressLimit(), connected);
      continue;
    }
    const auto since = well_since_.emplace(worker, now).first;
    const auto delay = startup_delays_.find(worker);
    const bool waits = serves && delay != startup_delays_.end() && serving_[chief] < delay->second;
    if (!connected || saves || waits) since->second = now;
    goes_on = goes_on || since->second < now;
    const Instant from = std::max(since->second, last_progress_);
    if (absl::Nanoseconds(now - from) > ProgressLimit()) {
      Fail(absl::StrCat("step ", serving_[chief], " has not ended for ", Since(last_progress_, now), ", while ",
                        worker->name(), " is there"));
    }
  }
  if (goes_on) CheckSum();
}

void Judge::CheckSum() {
  ++good_looks_;
  if (Stalls() > absl::ZeroDuration()) return;
  const absl::Duration limit = steps_ * StepLimit() + disturbances_ * ProgressLimit();
  if (good_looks_ * kWatchPeriod <= limit) return;
  Fail(absl::StrCat("the run takes longer than ", absl::FormatDuration(limit),
                    ", with a worker that is there: ", steps_, " steps and ", disturbances_, " disturbances"));
}

absl::Duration Judge::ProgressLimit() const {
  // The limit in slot_queue.h: four leases until a slot has been measured.
  const int leases = measured_ ? 1 : 4;
  return leases * absl::Seconds(plan_.config.cluster().lease_seconds()) + absl::Milliseconds(450) +
         static_cast<double>(plan_.steps - 1) * plan_.rules.hook_time + StepLimit();
}

void Judge::CheckDisk() {
  MemoryFileSystem* const fs = disk_->memory();
  const auto newest = LatestCheckpoint(fs, kLogdir);
  // If a chief is taken over between its last check of the lock and writing the list of checkpoints, it may write an
  // outdated list.
  CheckEnd("the run is over");
  if (!taken_over_ && newest.ok() && *newest) {
    const auto reader = BundleReader::Open(fs, **newest);
    const auto state = reader.ok() ? SessionStateOf(**reader) : absl::StatusOr<v1::SessionState>(reader.status());
    const auto set = static_cast<int64_t>(ledger_.present().changes().assignments.size());
    if (!state.ok() || state->assignments() != set) {
      return Fail(absl::StrCat("variables were set ", set, " times, and the last checkpoint has ",
                               state.ok() ? absl::StrCat(state->assignments()) : state.status().ToString()));
    }
    // The last checkpoint must have the state that the program's hooks reached when they ended the run.
    const RunRules& rules = plan_.rules;
    const bool others_end = end_wanted_ || end_wanted_with_block_ || rules.batches >= 0 || rules.stop_step >= 0 ||
                            (rules.non_finite_step >= 0 && !rules.skips_non_finite);
    if (hooks_end_ >= 0 && hooks_end_ < plan_.steps && !others_end &&
        (state->step() != hooks_end_ || state->unseen_size() > 0)) {
      return Fail(absl::StrCat("the hooks ended the run at step ", hooks_end_,
                               ", but the last checkpoint has their state at step ", state->step()));
    }
  }
  const auto state = ReadCheckpointState(fs, kLogdir);
  if (!state.ok() || !*state) return;
  const auto& listed = (*state)->all_model_checkpoint_paths();
  const auto names = fs->ListDirectory(kLogdir);
  for (absl::string_view name : *names) {
    if (!rivals_ && disk_->WasWellSince(0) && absl::StartsWith(name, "model.ckpt") && absl::EndsWith(name, ".tmp")) {
      Fail(absl::StrCat("a half-written file was left: ", name));
    }
    if (!absl::ConsumeSuffix(&name, ".index")) continue;
    const std::string prefix = JoinPath(kLogdir, name);
    if (reported_damaged_.count(prefix) > 0) continue;
    const bool is_listed = std::find(listed.begin(), listed.end(), prefix) != listed.end();
    // If the power was cut while the checkpoint was being deleted, a part of it may have reappeared.
    if ((power_was_cut_ || taken_over_) && !is_listed) continue;
    if (taken_over_ && streams_ != nullptr) continue;  // it may belong to a life that the ledger did not follow
    const auto reader = BundleReader::Open(fs, prefix);
    const absl::Status status = reader.ok() ? CheckCheckpoint(**reader, is_listed) : reader.status();
    if (!status.ok()) Fail(absl::StrCat("checkpoint ", prefix, ": ", status.ToString()));
  }
}

}  // namespace simulation
}  // namespace lockstep
