#include "lockstep/train/supervisor/coordinator.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

struct Coordinator::Member {
  explicit Member(absl::string_view name) : name(name) {}

  const std::string name;
  bool ended ABSL_GUARDED_BY(&Coordinator::mutex_) = false;
  std::unique_ptr<Thread> thread ABSL_GUARDED_BY(&Coordinator::mutex_);
};

Coordinator::Coordinator() : Coordinator(Options()) {}

Coordinator::Coordinator(Options options) : options_(std::move(options)) {}

Coordinator::~Coordinator() {
  RequestStop().IgnoreError();
  while (true) {
    Members members;
    std::vector<std::unique_ptr<Thread>> threads;
    {
      MutexLock lock(&mutex_);
      members.swap(group_.empty() ? stragglers_ : group_);
      for (const auto& member : members) threads.push_back(std::move(member->thread));
    }
    if (members.empty()) return;
    threads.clear();  // joins them; they use their members until they end
  }
}

bool Coordinator::IsClean(const absl::Status& status) const {
  return status.ok() || absl::c_linear_search(options_.clean_stop_codes, status.code());
}

absl::Status Coordinator::RequestStop(absl::Status reason) {
  std::vector<std::function<void()>> callbacks;
  absl::Status status = NoteStop(std::move(reason), &callbacks);
  for (const auto& callback : callbacks) callback();
  return status;
}

absl::Status Coordinator::NoteStop(absl::Status reason, std::vector<std::function<void()>>* callbacks) {
  MutexLock lock(&mutex_);
  callbacks->swap(on_stop_);
  const bool is_error = !IsClean(reason) && !(stop_requested_ && absl::IsCancelled(reason));
  stop_requested_ = true;
  changed_.SignalAll();
  if (!is_error) return absl::OkStatus();
  if (joined_) return reason;
  if (error_.ok()) error_ = std::move(reason);
  return absl::OkStatus();
}

void Coordinator::OnStop(std::function<void()> callback) {
  {
    MutexLock lock(&mutex_);
    if (!stop_requested_) return on_stop_.push_back(std::move(callback));
  }
  callback();
}

bool Coordinator::ShouldStop() const {
  MutexLock lock(&mutex_);
  return stop_requested_;
}

bool Coordinator::WaitForStop(absl::Duration timeout) { return WaitForStopUntil(options_.clock->Now() + timeout); }

bool Coordinator::WaitForStopUntil(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!stop_requested_) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) break;
  }
  return stop_requested_;
}

absl::Status Coordinator::status() const {
  MutexLock lock(&mutex_);
  return error_;
}

void Coordinator::StartThread(absl::string_view name, std::function<absl::Status()> body) {
  auto member = std::make_shared<Member>(name);
  MutexLock lock(&mutex_);
  group_.push_back(member);
  // The thread's function must not own the member, which owns the thread. Its last action is to mark the member as
  // ended.
  member->thread = options_.executor->Start(member->name, [this, body = std::move(body), raw = member.get()] {
    absl::Status status = CatchExceptions(body);
    if (!status.ok()) {
      status = RequestStop(std::move(status));
      LOG_IF(ERROR, !status.ok()) << "thread " << raw->name << " failed after its group was joined: " << status;
    }
    MutexLock lock(&mutex_);
    raw->ended = true;
    changed_.SignalAll();
  });
}

absl::Status Coordinator::StartLoop(absl::string_view name, Loop loop) {
  if (!loop.run) return absl::InvalidArgumentError(absl::StrCat("loop \"", name, "\" has no function to run"));
  StartThread(name, [this, loop = std::move(loop)] { return RunLoop(loop); });
  return absl::OkStatus();
}

absl::Status Coordinator::RunLoop(const Loop& loop) {
  if (loop.start) RETURN_IF_ERROR(loop.start());
  absl::Time next = options_.clock->Now();
  while (!WaitForStopUntil(next)) {
    RETURN_IF_ERROR(loop.run());
    if (loop.period <= absl::ZeroDuration()) continue;
    next += loop.period;  // Late calls are not skipped: the loop catches up.
  }
  return loop.stop ? loop.stop() : absl::OkStatus();
}

std::string Coordinator::LiveNames(const Members& members) const {
  std::vector<std::string> names;
  for (const auto& member : members) {
    if (!member->ended) names.push_back(member->name);
  }
  return absl::StrJoin(names, ", ");
}

absl::Status Coordinator::Join(const JoinOptions& options) {
  Members ended;
  std::vector<std::unique_ptr<Thread>> threads;
  absl::Status error;
  std::string live;
  {
    MutexLock lock(&mutex_);
    const Members members = group_;
    while (!stop_requested_ && !LiveNames(members).empty()) changed_.Wait(&mutex_);
    const absl::Time deadline = options_.clock->Now() + options.grace;
    while (!LiveNames(members).empty()) {
      if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) break;
    }
    joined_ = true;
    error = error_;
    live = LiveNames(members);
    for (const auto& member : members) {
      const auto it = absl::c_find(group_, member);
      if (it == group_.end()) continue;  // another Join has taken it
      (member->ended ? ended : stragglers_).push_back(member);
      if (member->ended) threads.push_back(std::move(member->thread));
      group_.erase(it);
    }
  }
  threads.clear();  // joins them
  if (!error.ok() || live.empty()) return error;
  const std::string what =
      absl::StrCat("threads still running ", absl::FormatDuration(options.grace), " after the stop: ", live);
  if (!options.ignore_live_threads) return WithExitCode(absl::DeadlineExceededError(what), kExitFailed);
  LOG(WARNING) << what;
  return absl::OkStatus();
}

void Coordinator::ClearStop() {
  MutexLock lock(&mutex_);
  stop_requested_ = false;
  joined_ = false;
  error_ = absl::OkStatus();
}

}  // namespace lockstep
