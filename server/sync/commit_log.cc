#include "lockstep/server/sync/commit_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {

void CommitLog::Start(int64_t step, const v1::SessionState& state, int64_t changes,
                      v1::SessionState::Settings settings) {
  MutexLock lock(&mutex_);
  restored_ = state;
  has_state_ = state.hook_size() > 0;
  state_ = state;
  state_.clear_unseen();
  if (!has_state_) {
    state_.set_step(step);
    ForgetHooksCalls();
  }
  state_.set_changes(changes);
  *state_.mutable_settings() = std::move(settings);
  commits_.assign(state.unseen().begin(), state.unseen().end());
  changed_.SignalAll();
}

void CommitLog::Append(v1::StepCommit commit) {
  {
    MutexLock lock(&mutex_);
    commits_.push_back(std::move(commit));
    Trim();
  }
  changed_.SignalAll();  // not under the lock, because a woken thread needs it
}

void CommitLog::Trim() {
  // If the program that continues the run has no hooks, the state never advances.
  if (has_state_ && commits_.size() > 2 * kCapacity) {
    has_state_ = false;
    state_.clear_hook();
    ForgetHooksCalls();
  }
  while (!commits_.empty() && commits_.size() > kCapacity &&
         (!has_state_ || commits_.front().step() <= state_.step())) {
    commits_.pop_front();
  }
}

void CommitLog::End(absl::Status why) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  why_ = std::move(why);
  changed_.SignalAll();
}

absl::StatusOr<v1::StepCommit> CommitLog::Await(int64_t step, absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (true) {
    // Most callers want the newest update.
    if (!commits_.empty() && commits_.back().step() > step) {
      for (const v1::StepCommit& commit : commits_) {
        if (commit.step() > step) return commit;
      }
    }
    if (ended_ && !why_.ok()) return why_;
    if (ended_) return absl::OutOfRangeError("the run is over");
    if (clock_->WaitUntil(&changed_, &mutex_, deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("no update followed global step ", step));
    }
  }
}

void CommitLog::SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) {
  MutexLock lock(&mutex_);
  has_state_ = true;
  // An incarnation that has restored the state sets the same step again, and then the counts must be kept.
  if (step != state_.step()) ForgetHooksCalls();
  state_.set_step(step);
  *state_.mutable_hook() = {hooks.begin(), hooks.end()};
  Trim();
}

void CommitLog::CountAssignment(ChangedBy by) {
  MutexLock lock(&mutex_);
  state_.set_assignments(state_.assignments() + 1);
  if (by == ChangedBy::kHook) state_.set_assignments_by_hooks(state_.assignments_by_hooks() + 1);
}

int64_t CommitLog::assignments() const {
  MutexLock lock(&mutex_);
  return state_.assignments();
}

void CommitLog::CountChange(ChangedBy by, absl::optional<v1::SessionState::Settings> settings) {
  MutexLock lock(&mutex_);
  if (settings) {
    state_.set_changes(state_.changes() + 1);
    *state_.mutable_settings() = *std::move(settings);
  }
  if (by == ChangedBy::kHook) state_.set_changes_by_hooks(state_.changes_by_hooks() + 1);
}

void CommitLog::ForgetHooksCalls() {
  state_.clear_assignments_by_hooks();
  state_.clear_changes_by_hooks();
}

v1::SessionState CommitLog::restored() const {
  MutexLock lock(&mutex_);
  return restored_;
}

std::string CommitLog::Serialize() const {
  MutexLock lock(&mutex_);
  if (!has_state_ && state_.assignments() == 0 && state_.changes() == 0) return "";
  v1::SessionState state = state_;
  if (!has_state_) return state.SerializeAsString();
  for (const v1::StepCommit& commit : commits_) {
    if (commit.step() > state_.step()) *state.add_unseen() = commit;
  }
  return state.SerializeAsString();
}

}  // namespace lockstep
