#include "lockstep/tests/simulation/ledger.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/run_record.h"

namespace lockstep {
namespace simulation {

Ledger::Ledger(World* world, Disk* disk, std::string logdir, const config::v1::RunSpec& config, const RunRules& rules)
    : world_(world), disk_(disk), logdir_(std::move(logdir)), config_(config), rules_(rules) {
  recorded_ = ChangesOf(config);
  present_ = Know(recorded_);
}

const Reference* Ledger::Know(RunChanges changes) {
  for (const auto& reference : known_) {
    if (reference->changes() == changes) return reference.get();
  }
  known_.push_back(present_ == nullptr ? std::make_unique<Reference>(config_, rules_, std::move(changes))
                                       : std::make_unique<Reference>(*present_, std::move(changes)));
  return known_.back().get();
}

void Ledger::Learn(bool durable) {
  const LifeScheduler::Uninterrupted uninterrupted(world_->scheduler());
  const auto record = ReadRunRecord(disk_->memory(), logdir_);
  const bool known = record.ok() && *record;
  recorded_ = known ? ChangesOf(**record) : ChangesOf(config_);
  if (known) {
    finished_ = (*record)->finished();
    if (durable && (*record)->has_end()) recorded_end_ = std::min(recorded_end_, (*record)->end().step());
  }
  const RunChanges changes = WithExpected(recorded_);
  if (present_->changes() == changes) return;
  RunChanges part = changes;
  // If the run only gained assignments, the runs with fewer assignments are already known.
  const auto& before = present_->changes();
  const bool extends = before.settings == changes.settings && before.assignments.size() <= changes.assignments.size() &&
                       std::equal(before.assignments.begin(), before.assignments.end(), changes.assignments.begin());
  part.assignments.resize(extends ? before.assignments.size() : 0);
  present_ = Know(part);
  if (changes.assignments.size() > recorded_.assignments.size() && !recorded_.assignments.empty()) {
    // The newest recorded assignment may have failed because the disk did not confirm it. In that case, it was not
    // made, and the next write of the record drops it. Hooks may change the run before that.
    RunChanges without = recorded_;
    without.assignments.pop_back();
    Know(WithExpected(std::move(without)));
  }
  for (size_t i = part.assignments.size(); i < changes.assignments.size(); ++i) {
    part.assignments.push_back(changes.assignments[i]);
    present_ = Know(part);
  }
}

RunChanges Ledger::WithExpected(RunChanges changes) const {
  for (const auto& assignment : expected_.assignments) {
    if (!absl::c_linear_search(changes.assignments, assignment)) changes.assignments.push_back(assignment);
  }
  for (const auto& settings : expected_.settings) {
    if (!absl::c_linear_search(changes.settings, settings)) changes.settings.push_back(settings);
  }
  return changes;
}

void Ledger::Restart(const Process* chief) {
  if (chief_ != nullptr) earlier_[chief_] = present_->changes();
  earlier_.erase(chief);
  chief_ = chief;
  expected_ = RunChanges();
  Learn();
}

bool Ledger::Expect(const Process* chief, const RunChanges::Assignment& assignment) {
  if (!Serves(chief)) {
    RunChanges* const own = &earlier_.at(chief);
    if (!absl::c_linear_search(own->assignments, assignment)) own->assignments.push_back(assignment);
    Know(*own);
    return false;
  }
  Learn();
  if (absl::c_linear_search(present_->changes().assignments, assignment)) return false;
  expected_.assignments.push_back(assignment);
  expects_settings_ = false;
  Learn();
  return true;
}

bool Ledger::Expect(const Process* chief, int64_t step, const RunChanges::Settings& settings) {
  const std::pair<int64_t, RunChanges::Settings> change(step, settings);
  if (!Serves(chief)) {
    RunChanges* const own = &earlier_.at(chief);
    if (!(own->settings.back().second == settings)) own->settings.push_back(change);
    Know(*own);
    return false;
  }
  Learn();
  const auto& present = present_->changes().settings;
  // The chief does not record a change to settings that already apply.
  if (present.back().second == settings || absl::c_linear_search(present, change)) return false;
  expected_.settings.push_back(change);
  expects_settings_ = true;
  Learn();
  return true;
}

void Ledger::Retract() {
  if (expects_settings_) {
    expected_.settings.pop_back();
  } else {
    expected_.assignments.pop_back();
  }
  Learn();
}

bool Ledger::WasDue(int64_t step) const {
  return std::any_of(known_.begin(), known_.end(),
                     [step](const auto& reference) { return reference->LastStep() == step; });
}

absl::Status Ledger::CheckAny(const std::function<absl::Status(const Reference&)>& check) {
  for (const bool learnt : {false, true}) {
    for (const auto& reference : known_) {
      if (check(*reference).ok()) return absl::OkStatus();
    }
    if (!learnt) Learn();
  }
  return check(*present_);
}

absl::Status Ledger::CheckValues(int64_t step, VariableValues values,
                                 std::vector<RunChanges::Assignment>* assignments) {
  RETURN_IF_ERROR(CheckAny([&](const Reference& reference) { return reference.CheckValues(step, values); }));
  const Reference* fewest = nullptr;
  for (const auto& reference : known_) {
    if (fewest != nullptr && fewest->changes().assignments.size() <= reference->changes().assignments.size()) continue;
    if (reference->CheckValues(step, values).ok()) fewest = reference.get();
  }
  *assignments = fewest->changes().assignments;
  return absl::OkStatus();
}

absl::Status Ledger::CheckRecorded(const BundleReader& reader) {
  ASSIGN_OR_RETURN(const v1::SessionState state, SessionStateOf(reader));
  Learn(/*durable=*/false);
  const auto assignments = static_cast<int64_t>(recorded_.assignments.size());
  const auto changes = static_cast<int64_t>(recorded_.settings.size()) - 1;
  if (state.assignments() <= assignments && state.changes() <= changes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("it has ", state.assignments(), " assignments and ", state.changes(),
                                          " changes, the record ", assignments, " and ", changes));
}

absl::Status Ledger::CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) {
  return CheckAny([&](const Reference& reference) { return reference.CheckNamed(step, values); });
}

absl::Status Ledger::CheckCheckpoint(const BundleReader& reader, bool listed) {
  if (!listed) {
    return CheckAny([&](const Reference& reference) { return reference.CheckCheckpoint(reader); });
  }
  ASSIGN_OR_RETURN(const v1::SessionState state, SessionStateOf(reader));
  RunChanges changes = present_->changes();
  if (state.assignments() > static_cast<int64_t>(changes.assignments.size())) {
    return absl::DataLossError(
        absl::StrCat("it has ", state.assignments(), " assignments, the record ", changes.assignments.size()));
  }
  changes.assignments.resize(static_cast<size_t>(state.assignments()));
  return Know(std::move(changes))->CheckCheckpoint(reader);
}

}  // namespace simulation
}  // namespace lockstep
