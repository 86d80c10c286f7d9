#include "lockstep/capi/testing/hosted_chief.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

ChiefHost::Options HostOptions(const HostedChief::Options& options) {
  ChiefHost::Options host;
  host.chief.logdir = options.logdir;
  host.chief.config = options.run;
  host.chief.share_memory = options.run.cluster().shared_memory();
  host.watch_signals = false;
  host.listen = "127.0.0.1:0";
  host.serve = ServeOverGrpc();
  return host;
}

}  // namespace

HostedChief::HostedChief(const Options& options) : host_(std::make_unique<ChiefHost>(HostOptions(options))) {}

absl::StatusOr<std::unique_ptr<HostedChief>> HostedChief::Create(const Options& options) {
  std::unique_ptr<HostedChief> chief(new HostedChief(options));
  chief->thread_ = Executor::Threads()->TryStart("lockstep chief", [chief = chief.get()] { chief->Run(); });
  if (chief->thread_ == nullptr) return absl::ResourceExhaustedError("the system has no thread left for the chief");
  MutexLock lock(&chief->mutex_);
  while (!chief->serving_.has_value()) chief->changed_.Wait(&chief->mutex_);
  RETURN_IF_ERROR(*chief->serving_);
  return chief;
}

HostedChief::~HostedChief() {
  if (thread_ == nullptr) return;
  host_->StopRun();
  thread_->Join();
}

void HostedChief::OnServing(const absl::Status& status) {
  if (status.ok()) address_ = host_->served().address;
  MutexLock lock(&mutex_);
  serving_ = status;
  changed_.SignalAll();
}

void HostedChief::Run() {
  absl::Status status = host_->Create();
  if (status.ok()) status = host_->Serve();
  OnServing(status);
  if (status.ok()) {
    status = host_->Wait();
    host_->MarkEnd(status);
  }
  MutexLock lock(&mutex_);
  end_ = std::move(status);
  changed_.SignalAll();
}

absl::Status HostedChief::Wait() {
  MutexLock lock(&mutex_);
  while (!end_.has_value()) changed_.Wait(&mutex_);
  return *end_;
}

}  // namespace lockstep
