#ifndef LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_
#define LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/gradients/frame_builder.h"
#include "lockstep/common/client/gradients/gradient_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/client/values/held_estimates.h"
#include "lockstep/common/client/values/received_values.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/step/step_timer.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Versions of the values that a worker reads directly from the chief's memory. The chief cycles through a few buffers,
// so their mappings are cached. Not thread-safe.
class SharedValues {
 public:
  // `layout` must outlive this.
  explicit SharedValues(const ParameterLayout* layout) : layout_(*layout) {}

  // Returns the address of each variable in the memory of a version. Constant variables are in `constants`, which is
  // null if there are none. The addresses stay mapped until three other versions, or other constants, have been
  // requested. Returns InvalidArgument if a size does not match the model, and Unavailable if the memory cannot be
  // reached or is gone.
  absl::StatusOr<const std::vector<const float*>*> Find(const v1::SharedMemoryHandle& handle,
                                                        const v1::SharedMemoryHandle* constants);

 private:
  struct Version {
    std::unique_ptr<SharedMemory> memory;
    std::vector<const float*> variables;
  };
  absl::StatusOr<Version*> FindVersion(const v1::SharedMemoryHandle& handle);
  // Maps the memory of `handle` as constants_ if there are constant variables.
  absl::Status FindConstants(const v1::SharedMemoryHandle* handle);

  const ParameterLayout& layout_;
  // Most recently requested version last.
  std::vector<std::unique_ptr<Version>> versions_;
  std::unique_ptr<SharedMemory> constants_;
};

// The values of a chief in the same process, read from the chief's memory. Values rounded to 16 bits are decoded into
// this object's memory, once per version. Not thread-safe.
class InProcessValues {
 public:
  // `layout` must outlive this.
  explicit InProcessValues(const ParameterLayout* layout) : layout_(*layout) {}

  // Returns the address of each variable. The addresses stay valid until the next Take.
  const std::vector<const float*>* Take(const HandedOverValues& values);

 private:
  const ParameterLayout& layout_;
  std::shared_ptr<const AlignedBuffer> version_;
  std::shared_ptr<const AlignedBuffer> constants_;
  AlignedBuffer decoded_;  // flat
  std::vector<const float*> variables_;
};

// The values at the step of a worker's token, regardless of how they arrive: in the chief's replies, in the chief's
// memory that this process maps, or in process. Not thread-safe.
class TokenValues {
 public:
  // `layout` and `buffers`, in which received values are stored, must outlive this object. Values of trainable
  // variables are sent as `type`.
  TokenValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers);

  // Stores the values in a reply. If the reply contains a token, values() then returns the values at the token's step.
  // Returns InvalidArgument if the reply does not match the model or lacks the token's values, and Unavailable if the
  // values are in the memory of a process that has ended.
  absl::Status OnReply(const StepReplyFrame& reply);
  // Releases the values. Called once the caller has finished reading values().
  void Release() { received_.Release(); }

  // Address of each variable, in a list that this object owns; empty before the first token.
  absl::Span<const float* const> values() const {
    return variables_ == nullptr ? absl::Span<const float* const>() : absl::MakeConstSpan(*variables_);
  }
  // True if the token's values are in the chief's memory, which implies that the chief has mapped the memory it was
  // offered.
  bool mapped() const { return mapped_; }

 private:
  absl::Status Take(const StepReplyFrame& reply);

  ReceivedValues received_;
  SharedValues shared_;
  InProcessValues in_process_;
  const std::vector<const float*>* variables_ = nullptr;
  bool mapped_ = false;
};

// A StepChannel over any StepStream. Gradients are sent while the worker continues computing. New values are received
// into the memory of gradients that were already sent, and do not overwrite the values in use. Not thread-safe except
// for CancelWait and Cancel. The destructor aborts the stream if it is open.
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
  StepTimer* timer() override { return timer_ ? &*timer_ : nullptr; }
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
  // Records the first error, and returns it from then on.
  absl::Status Check(absl::Status status);

  const ParameterLayout layout_;
  const int64_t slots_;
  const bool sparse_;
  const std::function<bool()> idle_;
  const std::unique_ptr<StepStream> stream_;
  absl::optional<StepTimer> timer_;
  VariableBuffers buffers_;  // of gradients and values
  lockstep::GradientBuffer gradients_;
  FrameBuilder frames_;
  TokenValues values_;
  HeldEstimates estimates_;  // of top-k compression
  std::vector<float*> token_estimates_;
  // True while a token has been requested and has not arrived. A token that was not requested is rejected, because it
  // would replace the values in use.
  bool awaits_token_ = false;
  // The next assignment, once the chief has sent it.
  absl::optional<Assignment> assignment_;
  v1::ContributionResult result_ = v1::CONTRIBUTION_NONE;  // of the contribution that was ended last
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STREAMED_STEP_CHANNEL_H_
