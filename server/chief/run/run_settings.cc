#include "lockstep/server/chief/run/run_settings.h"

#include <algorithm>
#include <utility>

#include "lockstep/common/config/settings_change.h"

namespace lockstep {
namespace {

// The record keeps this many of the newest changes and assignments, and up to twice as many before older ones are
// merged or dropped.
constexpr int kKept = 100;

int64_t CountOf(const v1::RunRecord::Change& change) { return std::max<int64_t>(1, change.count()); }

bool EndsWithProgramsChange(const v1::RunRecord& record) {
  return record.change_size() > 0 && record.change(record.change_size() - 1).by_program();
}

config::v1::OptimizerConfig WithoutRate(config::v1::OptimizerConfig optimizer) {
  optimizer.clear_learning_rate();
  return optimizer;
}

// Compares the bytes, because a program may change the rate at every step and reflection is many times slower. Neither
// message has a map, whose order could differ.
template <typename Message>
bool IsEqual(const Message& a, const Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Returns the settings of `before` that differ in `after`.
v1::RunRecord::Change::Settings Replaced(const config::v1::RunSpec& before, const config::v1::RunSpec& after) {
  v1::RunRecord::Change::Settings replaced;
  const config::v1::OptimizerConfig& optimizer = before.optimizer();
  if (!IsEqual(optimizer.learning_rate(), after.optimizer().learning_rate())) {
    *replaced.mutable_learning_rate() = optimizer.learning_rate();
  }
  if (!IsEqual(WithoutRate(optimizer), WithoutRate(after.optimizer()))) {
    *replaced.mutable_optimizer() = WithoutRate(optimizer);
  }
  if (before.input().batch_size() != after.input().batch_size()) replaced.set_batch_size(before.input().batch_size());
  return replaced;
}

void SetSettings(const v1::SessionState::Settings& settings, config::v1::RunSpec* config) {
  *config->mutable_optimizer() = settings.optimizer();
  if (settings.has_batch_size()) config->mutable_input()->set_batch_size(settings.batch_size());
}

// Adds `later`, the next change, to `merged`.
void Merge(const v1::RunRecord::Change& later, v1::RunRecord::Change* merged) {
  merged->set_step(later.step());
  merged->set_count(merged->count() + later.count());
  const v1::RunRecord::Change::Settings& replaced = later.replaced();
  v1::RunRecord::Change::Settings* const settings = merged->mutable_replaced();
  // If both changes replaced a setting, the value before the first one is kept.
  if (replaced.has_learning_rate() && !settings->has_learning_rate()) {
    *settings->mutable_learning_rate() = replaced.learning_rate();
  }
  if (replaced.has_optimizer() && !settings->has_optimizer()) *settings->mutable_optimizer() = replaced.optimizer();
  if (replaced.has_batch_size() && !settings->has_batch_size()) settings->set_batch_size(replaced.batch_size());
}

// Merges the oldest changes once there are 2 * kKept of them. Merges only changes in the newest format, which has a
// count: a checkpoint that was saved between such changes also stores its settings.
void MergeOldChanges(v1::RunRecord* record) {
  int first = record->change_size();
  if (first < 2 * kKept) return;
  while (first > 0 && record->change(first - 1).by_program() && record->change(first - 1).count() > 0) --first;
  if (record->change_size() - first < 2 * kKept) return;
  const int end = record->change_size() - kKept;
  for (int i = first + 1; i <= end; ++i) Merge(record->change(i), record->mutable_change(first));
  record->mutable_change()->DeleteSubrange(first + 1, end - first);
}

}  // namespace

int64_t NumChanges(const v1::RunRecord& record) {
  int64_t changes = 0;
  for (const v1::RunRecord::Change& change : record.change()) changes += CountOf(change);
  return changes;
}

v1::SessionState::Settings SettingsOf(const config::v1::RunSpec& spec) {
  v1::SessionState::Settings settings;
  *settings.mutable_optimizer() = spec.optimizer();
  if (spec.has_input()) settings.set_batch_size(spec.input().batch_size());
  return settings;
}

SettingsDifference DifferenceOf(const config::v1::RunSpec& before, const config::v1::RunSpec& after) {
  SettingsDifference difference;
  difference.replaced = Replaced(before, after);
  difference.for_workers =
      difference.replaced.has_batch_size() || (difference.replaced.has_optimizer() && ChangesGradients(before, after));
  return difference;
}

config::v1::RunSpec ConfigAtStart(const v1::RunRecord& record) {
  config::v1::RunSpec config = record.config();
  for (int i = record.change_size(); i > 0 && record.change(i - 1).by_program(); --i) {
    TakeBack(record.change(i - 1), &config);
  }
  return config;
}

void TakeBack(const v1::RunRecord::Change& change, config::v1::RunSpec* config) {
  if (change.has_before()) {
    *config = change.before();
    return;
  }
  const v1::RunRecord::Change::Settings& replaced = change.replaced();
  if (replaced.has_optimizer()) {
    config::v1::OptimizerConfig optimizer = replaced.optimizer();
    optimizer.mutable_learning_rate()->Swap(config->mutable_optimizer()->mutable_learning_rate());
    *config->mutable_optimizer() = std::move(optimizer);
  }
  if (replaced.has_learning_rate()) *config->mutable_optimizer()->mutable_learning_rate() = replaced.learning_rate();
  if (replaced.has_batch_size()) config->mutable_input()->set_batch_size(replaced.batch_size());
}

bool DropLaterChanges(int64_t restored, const v1::SessionState& state, v1::RunRecord* record) {
  const config::v1::RunSpec before = record->config();
  int64_t changes = NumChanges(*record);
  while (EndsWithProgramsChange(*record)) {
    v1::RunRecord::Change* const last = record->mutable_change(record->change_size() - 1);
    if (state.has_changes() ? changes <= state.changes() : last->step() <= restored) break;
    changes -= CountOf(*last);
    if (state.has_changes() && changes < state.changes()) {
      // The checkpoint was saved between changes that have since been merged.
      last->set_count(state.changes() - changes);
      SetSettings(state.settings(), record->mutable_config());
      break;
    }
    TakeBack(*last, record->mutable_config());
    record->mutable_change()->RemoveLast();
  }
  const bool forgets = ChangesGradients(before, record->config());
  if (forgets) ForgetDeclaration(record);
  return forgets;
}

config::v1::RunSpec WithChanges(const v1::RunRecord& record, config::v1::RunSpec given) {
  if (!EndsWithProgramsChange(record)) return given;
  *given.mutable_optimizer() = record.config().optimizer();
  if (record.config().has_input()) given.mutable_input()->set_batch_size(record.config().input().batch_size());
  return given;
}

void AddChange(int64_t step, const SettingsDifference& difference, const config::v1::RunSpec& after,
               v1::RunRecord* record) {
  v1::RunRecord::Change* const change = record->add_change();
  change->set_step(step);
  change->set_count(1);
  *change->mutable_replaced() = difference.replaced;
  change->set_by_program(true);
  SetSettings(SettingsOf(after), record->mutable_config());
  if (difference.for_workers) ForgetDeclaration(record);
  MergeOldChanges(record);
}

void AddAssignment(const v1::RunRecord::Assignment& assignment, v1::RunRecord* record) {
  *record->add_assignment() = assignment;
  if (record->assignment_size() < 2 * kKept) return;
  const int dropped = record->assignment_size() - kKept;
  record->mutable_assignment()->DeleteSubrange(0, dropped);
  record->set_earlier_assignments(record->earlier_assignments() + dropped);
}

void KeepAssignments(int64_t count, v1::RunRecord* record) {
  record->set_earlier_assignments(std::min(record->earlier_assignments(), count));
  const int64_t kept = std::min<int64_t>(count - record->earlier_assignments(), record->assignment_size());
  record->mutable_assignment()->DeleteSubrange(static_cast<int>(kept),
                                               record->assignment_size() - static_cast<int>(kept));
}

void ForgetDeclaration(v1::RunRecord* record) {
  record->clear_declared_by();
  record->clear_model_part();
  record->clear_framework();
  record->clear_canary();
}

}  // namespace lockstep
