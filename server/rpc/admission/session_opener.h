#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_SESSION_OPENER_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_SESSION_OPENER_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/server/rpc/call/unary_call.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// A small thread pool that answers OpenSession, because creating or restoring a model takes time. The total size of
// pending requests is bounded; calls beyond the bound are refused. The destructor answers all accepted requests.
// Thread-safe.
class SessionOpener {
 public:
  // `peer` is the identity that the session is bound to.
  using Open =
      std::function<absl::StatusOr<v1::OpenSessionReply>(const v1::OpenSessionRequest&, const std::string& peer)>;
  struct Options {
    // Maximum size of one request. A parsed model may take several times as much memory, because variables have short
    // names.
    size_t max_request_bytes = 8 << 20;
    // Maximum size of all pending requests together. Each counts as its size plus a small overhead, so that a thousand
    // workers may join at the same time.
    size_t max_bytes = 32 << 20;
    int threads = 4;
    Executor* executor = Executor::Threads();
  };

  // `open` is called on several threads at the same time.
  SessionOpener(const Options& options, Open open);

  // Calls `done` later with the reply, or immediately with Unavailable if too many requests are pending.
  void Answer(std::string request, const std::string& peer, UnaryCall::Done done) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool Reserve(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> ReplyTo(std::string bytes, const std::string& peer) const;

  const Options options_;
  const Open open_;
  Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the accepted, unanswered requests
  ThreadPool pool_;                           // the last member: its threads use the others
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_SESSION_OPENER_H_
