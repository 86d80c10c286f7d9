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
#include "lockstep/common/base/clock.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/step_timer.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The worker side of the training exchange. Not thread-safe except where noted. proto/lockstep/v1/chief.proto lists the
// errors of every call; Unavailable and Aborted mean "open a new session and continue".
class StepChannel {
 public:
  virtual ~StepChannel() = default;

  struct Assignment {
    // The block to compute, unless `finished`.
    v1::Token token;
    bool finished = false;
    std::string finish_message;
    // The settings with which to compute this block and all later ones, if they changed.
    absl::optional<v1::GradientSettings> settings;
    // The result of the previous contribution.
    v1::ContributionResult result = v1::CONTRIBUTION_NONE;
    // Unless `finished`, the value of each variable at token.step, row-major, aligned to kTensorAlignment. The channel
    // owns the memory and leaves it unchanged until the next AwaitToken.
    absl::Span<const float* const> values;
    // With top-k compression, the flat gradient estimate (ParameterLayout) of each slot of the token, which the caller
    // updates for the next step. The channel owns the memory until the next AwaitToken.
    absl::Span<float* const> estimates;
  };

  // Completes the contribution sent since the last call, if any, and blocks until the chief grants a token or reports
  // that the run has ended.
  virtual absl::StatusOr<Assignment> AwaitToken() = 0;

  // Sends the losses and update-op values of every slot of the token's block. Call once, before the first gradient.
  virtual absl::Status SendReports(absl::Span<const v1::SlotReport> reports) = 0;

  // Returns the buffer into which the caller writes a trainable variable's gradient before it calls SendGradient. The
  // gradient must be summed over the block and rounded to the run's gradient type. The buffer is aligned to
  // kTensorAlignment, is not initialized, and is valid until SendGradient(variable) or the next AwaitToken.
  virtual float* GradientBuffer(int variable) = 0;
  // Sends the gradient in GradientBuffer(variable), which must be final. Call once per trainable variable. Does not
  // block.
  virtual absl::Status SendGradient(int variable) = 0;

  // Replaces SendGradient under top-k compression: sends the differences (common/step/sparse_differences.h) of one
  // segment of a slot's gradient, which starts at element `offset` of the variable. Call once per segment and slot of
  // the token. `differences` must not change until the next AwaitToken.
  virtual absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) = 0;

  // Sends the digests of the trainable variables' gradients, in the model's order. Call after the last gradient if the
  // token requests digests.
  virtual absl::Status SendDigests(absl::Span<const uint64_t> digests) = 0;

  // Called instead of all of the above if the input has no batch for one of the token's slots. The next AwaitToken
  // informs the chief, which ends the run before the token's step.
  virtual absl::Status SendEndOfInput() = 0;

  // Stopwatch for the worker's time, which the channel reports with each contribution. The channel records its own
  // phases; the caller enters kBatch while it fetches batches. Null if no times are measured.
  virtual StepTimer* timer() { return nullptr; }

  // Informs the chief that the worker is leaving, waits until the chief has read everything sent so far, and closes the
  // stream. Drops a contribution that AwaitToken has not yet completed.
  virtual void Leave() = 0;
  // Makes the current or next AwaitToken return Cancelled instead of blocking. That call still completes the
  // contribution, and nothing that was already sent is lost if Leave follows. Thread-safe.
  virtual void CancelWait() = 0;
  // Aborts the stream: a blocked call returns Cancelled and all later calls fail. Thread-safe.
  virtual void Cancel() = 0;
};

// A worker's client of the chief. Thread-safe. Tries each call once; proto/lockstep/v1/chief.proto lists the errors. If
// the run is known to be over and no chief is left to report it, GetRunSpec returns an error that satisfies IsEndOfRun
// (common/cluster/end_of_run.h).
class ChiefClient {
 public:
  virtual ~ChiefClient() = default;

  // Called by a client once per kSilencePeriod while a heartbeat has no reply, with the time since it was sent. An
  // error ends the heartbeat.
  static constexpr absl::Duration kSilencePeriod = absl::Milliseconds(250);
  using OnSilence = std::function<absl::Status(const v1::HeartbeatRequest& heartbeat, absl::Duration silence)>;

  virtual absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() = 0;
  virtual absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) = 0;
  virtual absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) = 0;
  virtual absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) = 0;
  // Additional errors: one that satisfies IsChiefReplaced (common/cluster/replaced_chief.h) if the chief is silent and
  // another one leads the run; the caller then ends the session's stream.
  virtual absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<v1::RunStatus> GetStatus() = 0;
  virtual absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) = 0;
  virtual absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) = 0;
  // Makes a single call of a read that takes several. ReadAll (read_all.h) makes all of them.
  virtual absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) = 0;

  struct StepOptions {
    uint64_t session_id = 0;
    int64_t generation = 0;
    int64_t startup_delay_steps = 0;
    // R, the number of slots in a step. A token for slots beyond these is rejected. The default accepts any.
    int64_t slots = std::numeric_limits<int64_t>::max();
    Compression compression;
    // OpenSessionReply.shared_memory. If the channel can map this memory, it shares memory with the chief.
    absl::optional<v1::SharedMemoryHandle> chief_memory;
    // Brief work for a thread that would otherwise sleep in AwaitToken. Called repeatedly until a reply arrives or the
    // function returns false. Not called if tensors travel over sockets, because that thread then transfers them
    // itself. May be null.
    std::function<bool()> idle;
    // Clock for measuring the worker's times. If null, no times are reported.
    Clock* clock = nullptr;
  };
  // Opens the Step stream of a session. `model` is the model that the session declared.
  virtual absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                                       const v1::ModelSpec& model) = 0;

  // Stops the search for a chief. Current and later calls to GetRunSpec, OpenSession, SetInitialValues and
  // GetCanaryValues return Cancelled. Other calls and streams continue.
  virtual void CancelConnecting() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_CHIEF_CLIENT_H_
