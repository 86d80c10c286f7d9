#include "lockstep/cli/page/run_follower.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/cluster/end_of_run.h"

namespace lockstep {
namespace {

constexpr absl::Duration kSilencePeriod = absl::Seconds(1);

}  // namespace

RunFollower::RunFollower(Options options) : options_(std::move(options)) {
  thread_ = options_.executor->Start("follower", [this] { Loop(); });
  PeriodicTask::Options silence;
  silence.clock = options_.clock;
  silence.executor = options_.executor;
  silence.name = "silence";
  silence.period = kSilencePeriod;
  silence.first_at_once = false;
  silence_ = std::make_unique<PeriodicTask>(silence, [this] { CheckSilence(); });
}

RunFollower::~RunFollower() {
  silence_.reset();
  std::shared_ptr<RunFeed> feed;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    feed = feed_;
    stop_.SignalAll();
  }
  if (feed != nullptr) feed->Cancel();
  thread_->Join();
}

void RunFollower::Loop() {
  while (true) {
    Follow();
    const absl::Time next = options_.clock->Now() + options_.period;
    MutexLock lock(&mutex_);
    while (!stopping_ && !options_.clock->WaitUntil(&stop_, &mutex_, next)) {
    }
    if (stopping_) return;
  }
}

void RunFollower::Follow() {
  const auto targets = FindTargets(options_.fs, options_.master);
  if (!targets.ok()) {
    IsEndOfRun(targets.status()) ? options_.view->OnOver(targets.status()) : options_.view->OnAbsent(targets.status());
    return;
  }
  absl::Status status;
  for (const std::string& target : *targets) {
    if (Watch(target, &status)) break;
  }
  options_.view->OnAbsent(status);
}

bool RunFollower::Watch(const std::string& target, absl::Status* status) {
  const std::shared_ptr<RunFeed> feed = options_.watch(target);
  {
    MutexLock lock(&mutex_);
    if (stopping_) return true;
    feed_ = feed;
    heard_ = options_.clock->Now();
    silent_ = false;
  }
  bool any = false;
  v1::WatchRunReply reply;
  while (true) {
    *status = feed->Read(&reply);
    if (!status->ok()) break;
    if (!any) options_.view->OnConnected();
    any = true;
    options_.view->OnReply(reply);
    MutexLock lock(&mutex_);
    heard_ = options_.clock->Now();
  }
  MutexLock lock(&mutex_);
  feed_.reset();
  if (silent_) {
    *status = absl::UnavailableError(absl::StrCat("it has sent nothing for ", absl::FormatDuration(options_.patience)));
  }
  return any;
}

void RunFollower::CheckSilence() {
  std::shared_ptr<RunFeed> feed;
  {
    MutexLock lock(&mutex_);
    if (feed_ == nullptr || options_.clock->Now() - heard_ < options_.patience) return;
    silent_ = true;
    feed = feed_;
  }
  feed->Cancel();
}

}  // namespace lockstep
