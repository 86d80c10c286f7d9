#ifndef LOCKSTEP_SERVER_RPC_WATCH_WATCH_CALL_H_
#define LOCKSTEP_SERVER_RPC_WATCH_WATCH_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/call/revocable_call.h"
#include "lockstep/server/rpc/call/unauthenticated_calls.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

class WatchCall;

// The active WatchRun calls. Each call gets a reply when it begins and then one per period. The part that all replies
// share is computed once per period, and only while there is a call. Thread-safe.
class Watchers {
 public:
  struct Options {
    Chief* chief = nullptr;                                 // must outlive this, like all pointers
    UnauthenticatedCalls* unauthenticated_calls = nullptr;  // holds a call until its request has been read
    Executor* executor = nullptr;
    Clock* clock = Clock::Real();
    absl::Duration period = absl::Seconds(1);
    // A call whose client reads no reply for this long is cancelled.
    absl::Duration patience = absl::Minutes(1);
    size_t most = 64;
    // Called with each new call, so that the call can be revoked once its peer is no longer trusted. May be empty.
    std::function<void(const CallPeer&, std::weak_ptr<RevocableCall>)> watch_peer;
    // Fills in the counters of the server. May be empty.
    std::function<void(v1::RunCounters*)> fill_counters;
  };

  explicit Watchers(const Options& options);

  void Start(std::unique_ptr<IncomingCall> call);
  // Sends every call a last reply, so that watchers learn that the run has ended, and then ends the calls. From then
  // on, new calls are refused. Blocks until all calls have finished, but for at most kEndLimit. Must be called before
  // the server shuts down.
  static constexpr absl::Duration kEndLimit = absl::Milliseconds(500);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class WatchCall;

  // Returns Unavailable if there are too many calls, or once End has been called.
  absl::Status Enter(const std::shared_ptr<WatchCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(const std::shared_ptr<WatchCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<WatchCall>> Calls() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the serialized part of a reply that is the same for all calls.
  std::string CommonPart() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Mutex mutex_;
  std::set<std::shared_ptr<WatchCall>> calls_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar left_;
  PeriodicTask task_;  // the last member, because it uses the others
};

// A WatchRun call. Owns itself until it has finished. Between its operations, it waits for the next period of Watchers.
// Thread-safe.
class WatchCall final : public CompletionTag,
                        public EvictableCall,
                        public RevocableCall,
                        public std::enable_shared_from_this<WatchCall> {
 public:
  WatchCall(std::unique_ptr<IncomingCall> call, Watchers* watchers)
      : call_(std::move(call)), watchers_(watchers), options_(watchers->options_) {}

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends a reply with the common part, unless the client has not read the previous one yet.
  void Send(const std::string& common, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends a last reply, after the pending one if there is one, and then ends the call.
  void End(const std::string& common, absl::Time now, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnEvent(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  // True because the first reply contains the whole history, and Step streams must not have to wait for it.
  bool IsLong() const override { return true; }
  void OnEvicted() override { call_->context.TryCancel(); }
  // Cancels the call, so that its pending or next write fails.
  void OnRevoked(const absl::Status&) override { call_->context.TryCancel(); }

 private:
  // kIdle means that no operation is pending. The thread that leaves kIdle starts the next operation.
  enum class State { kReading, kIdle, kWriting, kFinishing };

  void OnRequest(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const std::string& common);
  void Finish(const absl::Status& status);

  const std::unique_ptr<IncomingCall> call_;
  Watchers* const watchers_;
  const Watchers::Options& options_;
  // Used only by the thread that handles a completed operation or starts the next one.
  grpc::ByteBuffer request_, reply_;
  bool times_ = false;
  Chief::WatchCursor cursor_;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kReading;
  // The status with which the call ends after the pending write and the last reply; OK if it continues.
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  // The common part of the reply to send before the call ends; empty if there is none.
  std::string last_ ABSL_GUARDED_BY(mutex_);
  absl::Time written_at_ ABSL_GUARDED_BY(mutex_);
  // Keeps this object alive until the call has finished.
  std::shared_ptr<WatchCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_WATCH_WATCH_CALL_H_
