#ifndef LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// A worker's end of the training exchange. For one thread. Errors of every call are those of
// proto/lockstep/v1/chief.proto: Unavailable and Aborted mean "open a new session and continue".
class StepChannel {
 public:
  virtual ~StepChannel() = default;

  struct Assignment {
    // The block to compute, unless `finished`.
    v1::Token token;
    bool finished = false;
    std::string finish_message;
    // What became of the contribution before.
    v1::ContributionResult result = v1::CONTRIBUTION_NONE;
    // Unless `finished`: the value of each variable at token.step, row-major, aligned to kTensorAlignment. The memory
    // is the channel's, unchanged until the next AwaitToken.
    absl::Span<const float* const> values;
    // With top-k compression, for each slot of the token: the estimate of its gradient, flat (ParameterLayout), which
    // the caller brings to the next step. The channel's memory, until the next AwaitToken.
    absl::Span<float* const> estimates;
  };

  // Ends the contribution that was sent since the last call, if any, and blocks until the chief
  // gives a token or says that the run is over.
  virtual absl::StatusOr<Assignment> AwaitToken() = 0;

  // Losses and update-op values for every slot of the token's block. Once, before the first gradient.
  virtual absl::Status SendReports(absl::Span<const v1::SlotReport> reports) = 0;

  // Where the gradient of a trainable variable, summed over the block, is to be put before SendGradient:
  // its elements, rounded to the run's type for gradients, aligned to kTensorAlignment, not initialized. Valid
  // until SendGradient(variable) or the next AwaitToken.
  virtual float* GradientBuffer(int variable) = 0;
  // The gradient in GradientBuffer(variable) is final. Once for each trainable variable. Does not block.
  virtual absl::Status SendGradient(int variable) = 0;

  // With top-k compression instead of SendGradient: the differences (common/step/sparse_differences.h) of a segment
  // of a slot's gradient, which starts at element `offset` of the variable. Once for each segment and slot of the
  // token. `differences` must be unchanged until the next AwaitToken.
  virtual absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) = 0;

  // When the token asks for them: the digests of the trainable variables' gradients, in the model's order. After the
  // last gradient.
  virtual absl::Status SendDigests(absl::Span<const uint64_t> digests) = 0;

  // In place of all of these: the input has no batch for a slot of the token. The next AwaitToken tells the chief,
  // which ends the run before the token's step.
  virtual absl::Status SendEndOfInput() = 0;

  // Tells the chief that the worker goes, waits until it has read that and all that was sent before, and closes. A
  // contribution that AwaitToken has not ended is dropped.
  virtual void Leave() = 0;
  // From any thread: AwaitToken, the one that is blocked or the next, still ends the contribution, but returns
  // Cancelled instead of blocking. Nothing that was sent is lost if Leave follows.
  virtual void Interrupt() = 0;
  // From any thread: breaks the stream off. What is blocked returns Cancelled; all later calls fail.
  virtual void Cancel() = 0;
};

// The chief, as a worker calls it. Thread-safe. Calls are tried once; errors as in proto/lockstep/v1/chief.proto.
// GetRunSpec also returns an error for which IsEndOfRun (common/cluster/end_of_run.h) holds when the run is known to
// be over, with no chief left to say so.
class ChiefClient {
 public:
  virtual ~ChiefClient() = default;

  virtual absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() = 0;
  virtual absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) = 0;
  virtual absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) = 0;
  virtual absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<v1::RunStatus> GetStatus() = 0;
  virtual absl::StatusOr<v1::RequestEndReply> RequestEnd(const v1::RequestEndRequest& request) = 0;
  // One call of a read; ReadAll (read_all.h) makes all of them.
  virtual absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) = 0;

  struct StepOptions {
    uint64_t session_id = 0;
    int64_t generation = 0;
    int64_t startup_delay_steps = 0;
    // R: a token for others is refused. The default takes any.
    int64_t slots = std::numeric_limits<int64_t>::max();
    Compression compression;
    // OpenSessionReply.shared_memory: the channel shares memory with the chief if it can map this.
    absl::optional<v1::SharedMemoryHandle> chief_memory;
    // Brief work for the thread that would sleep in AwaitToken: called there while nothing has come, again as long as
    // it returns true. Where tensors travel over sockets it is not called: what moves them is the thread itself. May be
    // null.
    std::function<bool()> idle;
  };
  // Opens the Step stream of a session. `model` is what the session declared.
  virtual absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                                       const v1::ModelSpec& model) = 0;

  // Ends the search for a chief: GetRunSpec, OpenSession and GetCanaryValues, those under way and all later ones,
  // return Cancelled. Other calls and streams continue.
  virtual void StopConnecting() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_
