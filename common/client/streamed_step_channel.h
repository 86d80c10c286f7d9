#ifndef LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_
#define LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/gradients/frame_builder.h"
#include "lockstep/common/client/gradients/gradient_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/client/values/held_estimates.h"
#include "lockstep/common/client/values/received_values.h"
#include "lockstep/common/client/values/token_values.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// A StepChannel over any StepStream. Gradients are sent while the worker continues computing. New values are received
// into the memory of gradients already sent, next to the values in use. Not thread-safe except for CancelWait and
// Cancel. The destructor aborts the stream if it is open.
class StreamedStepChannel : public StepChannel, private StepStream::Receiver {
 public:
  StreamedStepChannel(std::unique_ptr<StepStream> stream, const ChiefClient::StepOptions& options,
                      ParameterLayout layout);

  absl::StatusOr<Assignment> AwaitToken() override;
  absl::Status SendReports(absl::Span<const v1::SlotReport> reports) override;
  float* GradientBuffer(int variable) override { return gradients_.Variable(variable); }
  absl::Status SendGradient(int variable) override;
  absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) override;
  absl::Status SendDigests(absl::Span<const uint64_t> digests) override;
  absl::Status SendEndOfInput() override;
  void Leave() override;
  void CancelWait() override { stream_->CancelWait(); }
  void Cancel() override { stream_->Cancel(); }

 private:
  absl::StatusOr<bool> OnReply(const StepReplyFrame& reply) override;
  bool OnIdle() override { return idle_ && idle_(); }
  absl::Status CheckToken(const v1::Token& token) const;
  // Stores the estimates of the token's slots in token_estimates_.
  absl::Status TakeEstimates(const StepReplyFrame& reply);
  absl::Status AddPiece(StepPiece piece);
  absl::Status Send(const StepFrame& frame);
  // Remembers the first error and returns it from then on.
  absl::Status Check(absl::Status status);

  const ParameterLayout layout_;
  const int64_t slots_;
  const bool sparse_;
  const std::function<bool()> idle_;
  const std::unique_ptr<StepStream> stream_;
  VariableBuffers buffers_;  // of gradients and values
  lockstep::GradientBuffer gradients_;
  FrameBuilder frames_;
  TokenValues values_;
  HeldEstimates estimates_;  // of top-k compression
  std::vector<float*> token_estimates_;
  // True while a token is requested. An unrequested token would replace the values in use.
  bool awaits_token_ = false;
  // The next assignment, once the chief has sent it.
  absl::optional<Assignment> assignment_;
  v1::ContributionResult result_ = v1::CONTRIBUTION_NONE;  // of the contribution that was ended last
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_
