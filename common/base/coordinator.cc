#include "common/base/coordinator.h"

#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace lockstep {

struct Coordinator::Thread {
  std::string name;
  bool ended = false;  // guarded by the coordinator's mutex_
  std::thread thread;
};

Coordinator::Coordinator() : Coordinator(Options()) {}

Coordinator::Coordinator(Options options) : options_(std::move(options)) {}

Coordinator::~Coordinator() {
  RequestStop().IgnoreError();
  while (true) {
    Threads threads;
    {
      MutexLock lock(&mutex_);
      threads.swap(group_.empty() ? stragglers_ : group_);
    }
    if (threads.empty()) return;
    for (const auto& thread : threads) thread->thread.join();
  }
}

bool Coordinator::IsClean(const absl::Status& status) const {
  return status.ok() || absl::c_linear_search(options_.clean_stop_codes, status.code());
}

absl::Status Coordinator::RequestStop(absl::Status reason) {
  MutexLock lock(&mutex_);
  const bool is_error = !IsClean(reason) && !(stop_requested_ && absl::IsCancelled(reason));
  stop_requested_ = true;
  changed_.SignalAll();
  if (!is_error) return absl::OkStatus();
  if (joined_) return reason;
  if (error_.ok()) error_ = std::move(reason);
  return absl::OkStatus();
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
  auto thread = std::make_shared<Thread>();
  thread->name = std::string(name);
  MutexLock lock(&mutex_);
  group_.push_back(thread);
  // The thread must not hold itself: its last action is to say that it has ended.
  thread->thread = std::thread([this, body = std::move(body), raw = thread.get()] {
    absl::Status status = body();
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
    next += loop.period;
    const absl::Duration late = options_.clock->Now() - next;
    if (late > absl::ZeroDuration()) next += absl::Ceil(late, loop.period);
  }
  return loop.stop ? loop.stop() : absl::OkStatus();
}

std::string Coordinator::LiveNames(const Threads& threads) const {
  std::vector<std::string> names;
  for (const auto& thread : threads) {
    if (!thread->ended) names.push_back(thread->name);
  }
  return absl::StrJoin(names, ", ");
}

absl::Status Coordinator::Join(const JoinOptions& options) {
  Threads ended;
  absl::Status error;
  std::string live;
  {
    MutexLock lock(&mutex_);
    const Threads threads = group_;
    while (!stop_requested_ && !LiveNames(threads).empty()) changed_.Wait(&mutex_);
    const absl::Time deadline = options_.clock->Now() + options.grace;
    while (!LiveNames(threads).empty()) {
      if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) break;
    }
    joined_ = true;
    error = error_;
    live = LiveNames(threads);
    for (const auto& thread : threads) {
      const auto it = absl::c_find(group_, thread);
      if (it == group_.end()) continue;  // another Join has taken it
      (thread->ended ? ended : stragglers_).push_back(thread);
      group_.erase(it);
    }
  }
  for (const auto& thread : ended) thread->thread.join();
  if (!error.ok() || live.empty()) return error;
  const std::string what =
      absl::StrCat("threads still running ", absl::FormatDuration(options.grace), " after the stop: ", live);
  if (!options.ignore_live_threads) return absl::DeadlineExceededError(what);
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
