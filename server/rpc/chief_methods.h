#ifndef LOCKSTEP_SERVER_RPC_CHIEF_METHODS_H_
#define LOCKSTEP_SERVER_RPC_CHIEF_METHODS_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/admission/call_acceptor.h"
#include "lockstep/server/rpc/admission/peer_authority.h"
#include "lockstep/server/rpc/admission/session_opener.h"
#include "lockstep/server/rpc/call/call_counts.h"
#include "lockstep/server/rpc/call/unary_call.h"
#include "lockstep/server/rpc/call/unauthenticated_calls.h"
#include "lockstep/server/rpc/watch/watch_call.h"

namespace lockstep {

// The methods of a chief's server, including health checks, with their handlers and the limits for unauthenticated
// callers. Must be destroyed after all calls have ended. Thread-safe.
class ChiefMethods {
 public:
  // Maximum size of a message. docs/wire.md and proto/lockstep/v1/chief.proto document it for clients.
  static constexpr size_t kMaxMessageBytes = 8 << 20;
  // Maximum size of a ReadVariables request.
  static constexpr size_t kMaxReadBytes = 64 << 10;
  // Maximum size of a SetInitialValues request.
  static constexpr size_t kMaxInitialValuesBytes = 1 << 20;
  static constexpr size_t kMaxUnauthenticatedCalls = 64;
  // Maximum number of waiting GetCanaryValues calls. A worker that joins makes one call at a time.
  static constexpr size_t kMaxCanaryCalls = 2048;

  // All pointers must outlive this object. `ended` has the calls of the server, and `call_patience` is
  // UnauthenticatedCalls::Options::patience.
  ChiefMethods(Chief* chief, PeerAuthority* authority, const CallCounts* ended, absl::Duration call_patience,
               Executor* executor);

  // Returns the handlers by method, for a CallAcceptor on `queue`. This object must outlive them. A Step stream that
  // receives no frame for `silence_limit` ends.
  std::map<std::string, CallAcceptor::Handler> Handlers(grpc::ServerCompletionQueue* queue,
                                                        absl::Duration silence_limit, Executor* executor);
  // Calls Watchers::End.
  void EndWatches() { watchers_.End(); }

 private:
  Chief* const chief_;
  PeerAuthority* const authority_;
  UnauthenticatedCalls unauthenticated_calls_;
  SessionOpener opener_;
  // Draws the values for GetCanaryValues, which takes a few milliseconds per reply. A worker with a large model calls
  // it a thousand times, and these calls must not occupy the threads of the Step streams.
  ThreadPool canaries_;
  std::map<std::string, UnaryCall::Method> unary_;  // constant after construction
  Watchers watchers_;
  PeriodicTask sweeps_;  // the last member, because it uses the others
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CHIEF_METHODS_H_
