#ifndef LOCKSTEP_SERVER_RPC_STEP_RING_STEP_WIRE_H_
#define LOCKSTEP_SERVER_RPC_STEP_RING_STEP_WIRE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/memory/ring_endpoint.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/step/step_wire.h"

namespace lockstep {

// A wire through a ring (RingEndpoint) shared with a worker on this machine. A read completes on the ring's own thread.
// A write completes within Write if the ring has room for it, otherwise on that thread. Stop must be called to end the
// thread. Does not detect the death of the worker. Thread-safe.
class RingStepWire : public StepWire {
 public:
  struct Options {
    std::unique_ptr<RingEndpoint> ring;  // attached
    CompletionTag* read = nullptr;
    CompletionTag* written = nullptr;
    // Called at most once, on any thread, if the worker's memory is inconsistent. Nothing is received or sent after
    // that.
    std::function<void(const absl::Status&)> on_broken;
    Executor* executor = nullptr;
    // The object that contains this one. It is kept alive until Stop has ended the thread.
    std::shared_ptr<const void> owner;
  };
  // Errors: ResourceExhausted if no thread can be created.
  static absl::StatusOr<std::unique_ptr<RingStepWire>> Start(Options options);

  void Read(grpc::ByteBuffer* message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const grpc::ByteBuffer& message) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the wire: pending and later operations fail.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit RingStepWire(Options options);

  // The main function of the ring's thread.
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() ABSL_LOCKS_EXCLUDED(mutex_);
  // TakeOne and SendOn return true if there was anything to do.
  bool TakeOne() ABSL_LOCKS_EXCLUDED(mutex_);
  bool SendOn() ABSL_LOCKS_EXCLUDED(mutex_);
  void FailPending() ABSL_LOCKS_EXCLUDED(mutex_);
  void Break(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;  // without `owner`, which the thread holds
  RingEndpoint& ring_;

  Mutex mutex_;
  grpc::ByteBuffer* wanted_ ABSL_GUARDED_BY(mutex_) = nullptr;  // a read is pending
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;                // a write is pending
  // True if the thread will check wanted_ without being woken.
  bool looks_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the thread has failed the pending operations
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_RING_STEP_WIRE_H_
