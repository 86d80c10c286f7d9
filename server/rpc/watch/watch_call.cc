#include "lockstep/server/rpc/watch/watch_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"
#include "lockstep/server/rpc/call/unary_call.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {
namespace {

constexpr size_t kMaxRequestBytes = 4096;

absl::Status ParseWatchRequest(const grpc::ByteBuffer& message, v1::WatchRunRequest* request) {
  if (message.Length() > kMaxRequestBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message of ", message.Length(), " bytes; WatchRun takes ", kMaxRequestBytes));
  }
  std::vector<grpc::Slice> slices;
  if (const grpc::Status dumped = message.Dump(&slices); !dumped.ok()) {
    return absl::InternalError(absl::StrCat("cannot read a message: ", dumped.error_message()));
  }
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return ParseRequest(bytes, 100 * kMaxRequestBytes, request);
}

PeriodicTask::Options TaskOptions(const Watchers::Options& options) {
  PeriodicTask::Options task;
  task.clock = options.clock;
  task.executor = options.executor;
  task.name = "watchers";
  task.period = options.period;
  return task;
}

}  // namespace

Watchers::Watchers(const Options& options) : options_(options), task_(TaskOptions(options), [this] { SendAll(); }) {}

void Watchers::Start(std::unique_ptr<IncomingCall> call) {
  std::make_shared<WatchCall>(std::move(call), this)->Begin();
}

absl::Status Watchers::Enter(const std::shared_ptr<WatchCall>& call) {
  MutexLock lock(&mutex_);
  if (ended_) return absl::UnavailableError("the chief is stopping");
  if (calls_.size() >= options_.most) {
    return absl::UnavailableError(absl::StrCat("the run has ", calls_.size(), " watchers already; try again later"));
  }
  calls_.insert(call);
  return absl::OkStatus();
}

void Watchers::Leave(const std::shared_ptr<WatchCall>& call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
  left_.SignalAll();
}

std::string Watchers::CommonPart() {
  v1::WatchRunReply reply;
  options_.chief->FillWatch(&reply);
  reply.mutable_counters()->set_evicted_calls(options_.unauthenticated_calls->num_evicted());
  if (options_.fill_counters) options_.fill_counters(reply.mutable_counters());
  MutexLock lock(&mutex_);
  reply.mutable_counters()->set_watchers(static_cast<int64_t>(calls_.size()));
  return reply.SerializeAsString();
}

std::vector<std::shared_ptr<WatchCall>> Watchers::Calls() {
  MutexLock lock(&mutex_);
  return {calls_.begin(), calls_.end()};
}

void Watchers::SendAll() {
  const std::vector<std::shared_ptr<WatchCall>> calls = Calls();
  if (calls.empty()) return;
  const std::string common = CommonPart();
  const absl::Time now = options_.clock->Now();
  for (const auto& call : calls) call->Send(common, now);
}

void Watchers::End() {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  task_.Stop();
  const absl::Time now = options_.clock->Now();
  {
    const std::vector<std::shared_ptr<WatchCall>> calls = Calls();
    if (calls.empty()) return;
    const std::string common = CommonPart();
    for (const auto& call : calls) call->End(common, now, absl::UnavailableError("the chief is stopping"));
  }
  MutexLock lock(&mutex_);
  while (!calls_.empty() && !options_.clock->WaitUntil(&left_, &mutex_, now + kEndLimit)) {
  }
}

void WatchCall::Begin() {
  options_.unauthenticated_calls->Enter(shared_from_this());
  {
    MutexLock lock(&mutex_);
    self_ = shared_from_this();
  }
  if (options_.watch_peer) options_.watch_peer(call_->peer, weak_from_this());
  call_->stream.Read(&request_, this);
}

void WatchCall::OnRequest(bool ok) {
  v1::WatchRunRequest request;
  absl::Status status = ok ? ParseWatchRequest(request_, &request) : absl::InvalidArgumentError("no message");
  request_.Clear();
  times_ = request.times();
  if (status.ok()) status = watchers_->Enter(shared_from_this());
  options_.unauthenticated_calls->Leave(this);
  {
    MutexLock lock(&mutex_);
    state_ = status.ok() ? State::kIdle : State::kFinishing;
  }
  if (!status.ok()) return Finish(status);
  Send(watchers_->CommonPart(), options_.clock->Now());
}

void WatchCall::Send(const std::string& common, absl::Time now) {
  bool late = false;
  {
    MutexLock lock(&mutex_);
    late = state_ == State::kWriting && now - written_at_ > options_.patience;
    if (late && end_.ok()) {
      end_ =
          absl::DeadlineExceededError(absl::StrCat("no reply was taken for ", absl::FormatDuration(options_.patience)));
    }
    if (state_ != State::kIdle && !late) return;
    if (!late) {
      state_ = State::kWriting;
      written_at_ = now;
    }
  }
  // Only TryCancel ends a write that the client does not read.
  late ? call_->context.TryCancel() : Write(common);
}

void WatchCall::Write(const std::string& common) {
  v1::WatchRunReply news;
  options_.chief->FillNews(times_, &cursor_, &news);
  // Two concatenated serialized messages parse as one message with the fields of both.
  const grpc::Slice parts[2] = {grpc::Slice(common), grpc::Slice(news.SerializeAsString())};
  reply_ = grpc::ByteBuffer(parts, 2);
  call_->stream.Write(reply_, this);
}

void WatchCall::End(const std::string& common, absl::Time now, const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    if (end_.ok()) end_ = why;
    if (state_ != State::kIdle) {
      last_ = common;
      return;
    }
    state_ = State::kWriting;
    written_at_ = now;
  }
  Write(common);
}

void WatchCall::Finish(const absl::Status& status) { call_->stream.Finish(call_->EndWith(status), this); }

void WatchCall::OnEvent(bool ok) {
  State ended;
  absl::Status end;
  std::string last;
  std::shared_ptr<WatchCall> self;
  {
    MutexLock lock(&mutex_);
    ended = state_;
    self = self_;
    if (ended == State::kFinishing) self_.reset();
    if (ended == State::kWriting) {
      if (end_.ok() && !ok) end_ = absl::CancelledError("the watcher is gone");
      end = end_;
      if (ok) last.swap(last_);
      if (last.empty()) state_ = end.ok() ? State::kIdle : State::kFinishing;
    }
  }
  switch (ended) {
    case State::kReading:
      return OnRequest(ok);
    case State::kWriting:
      if (!last.empty()) return Write(last);
      if (!end.ok()) Finish(end);
      return;
    case State::kFinishing:
      call_->OnEnded(ok);
      return watchers_->Leave(self);
    case State::kIdle:
      return;  // no operation is pending
  }
}

}  // namespace lockstep
