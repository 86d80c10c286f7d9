#ifndef LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/config/compression.h"
#include "proto/chief.pb.h"

namespace lockstep {

// A worker's end of the training exchange. For one thread. Errors of every call are those of
// proto/chief.proto: Unavailable and Aborted mean "open a new session and go on".
class StepChannel {
 public:
  virtual ~StepChannel() = default;

  struct Assignment {
    // The block to compute, unless `finished`.
    Token token;
    bool finished = false;
    std::string finish_message;
    // What became of the contribution before.
    Fate fate = FATE_NONE;
    // The value of each variable at token.step, row-major, aligned to kTensorAlignment. The memory is the
    // channel's, unchanged until the next AwaitToken.
    absl::Span<const float* const> values;
    // With top-k compression, for each slot of the token: the estimate of its gradient, flat (ParameterLayout), which
    // the caller brings to the next step. The channel's memory, until the next AwaitToken.
    absl::Span<float* const> estimates;
  };

  // Ends the contribution that was sent since the last call, if any, and blocks until the chief
  // gives a token or says that the run is over.
  virtual absl::StatusOr<Assignment> AwaitToken() = 0;

  // Losses and update-op values for every slot of the token's block. Once, before the first gradient.
  virtual absl::Status SendReports(absl::Span<const SlotReport> reports) = 0;

  // Where the gradient of a trainable variable, summed over the block, is to be put before SendGradient:
  // its elements, rounded to the run's type for gradients, aligned to kTensorAlignment, not initialized. Valid
  // until the next AwaitToken.
  virtual float* GradientBuffer(int variable) = 0;
  // The gradient in GradientBuffer(variable) is final. Once for each trainable variable. Does not block.
  virtual absl::Status SendGradient(int variable) = 0;

  // With top-k compression instead of SendGradient: the differences (common/tensor/sparse_differences.h) of a segment
  // of a slot's gradient, which starts at element `offset` of the variable. Once for each segment and slot of the
  // token. `differences` must be unchanged until the next AwaitToken.
  virtual absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) = 0;

  // Tells the chief that the worker goes, waits until it has read that and all that was sent before, and closes. A
  // contribution that AwaitToken has not ended is dropped.
  virtual void Leave() = 0;
  // From any thread: AwaitToken, the one that is blocked or the next, still ends the contribution, but returns
  // Cancelled instead of blocking. Nothing that was sent is lost if Leave follows.
  virtual void Interrupt() = 0;
  // From any thread: breaks the stream off. What is blocked returns Cancelled; all later calls fail.
  virtual void Cancel() = 0;
};

// The chief, as a worker calls it. Thread-safe. Calls are tried once; errors as in proto/chief.proto.
class ChiefClient {
 public:
  virtual ~ChiefClient() = default;

  virtual absl::StatusOr<GetRunReply> GetRun() = 0;
  virtual absl::StatusOr<OpenSessionReply> OpenSession(const OpenSessionRequest& request) = 0;
  virtual absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<RunStatus> GetStatus() = 0;

  struct StepOptions {
    uint64_t session_id = 0;
    int64_t epoch = 0;
    int64_t startup_delay_steps = 0;
    Compression compression;
    // OpenSessionReply.shared_memory: the channel shares memory with the chief if it can map this.
    absl::optional<SharedMemoryHandle> chief_memory;
  };
  // Opens the Step stream of a session. `model` is what the session declared.
  virtual absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                                       const ModelSpec& model) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_
