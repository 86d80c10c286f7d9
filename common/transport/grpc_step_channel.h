#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_CHANNEL_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_CHANNEL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/client/chief_client.h"
#include "common/client/held_estimates.h"
#include "common/client/received_values.h"
#include "common/client/step_frame.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/parameter_layout.h"
#include "common/transport/shared_values.h"
#include "grpcpp/alarm.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace lockstep {

// A worker's Step stream over gRPC: the generic asynchronous API on a completion queue that the worker's
// own thread polls, so that no message crosses a thread. Gradients leave while the worker goes on computing; new
// values are received into a second buffer. For one thread, but for Interrupt and
// Cancel.
class GrpcStepChannel : public StepChannel {
 public:
  // A Leave in which nothing moves for `leave_limit` breaks the stream off.
  GrpcStepChannel(std::shared_ptr<grpc::Channel> channel, const ChiefClient::StepOptions& options,
                  ParameterLayout layout, absl::Duration leave_limit);
  // Cancels the stream if it is open.
  ~GrpcStepChannel() override;

  absl::StatusOr<Assignment> AwaitToken() override;
  absl::Status SendReports(absl::Span<const SlotReport> reports) override;
  float* GradientBuffer(int variable) override;
  absl::Status SendGradient(int variable) override;
  absl::Status SendDifferences(int64_t slot, int variable, int64_t offset, absl::string_view differences) override;
  void Leave() override;
  void Interrupt() override;
  void Cancel() override;

 private:
  // The operations on the stream; their addresses are the tags.
  struct Operation {
    bool pending = false;
  };

  // In shared memory if the chief's can be mapped.
  AlignedBuffer NewGradients(size_t bytes) const;
  // Sets token_values_ to those of the reply's token.
  absl::Status TakeValues(const StepReplyFrame& reply);
  // A part of a gradient as it travels.
  FloatChunks EncodeGradient(int variable, int64_t offset, int64_t elements);
  // Into the frame that is being filled, which leaves when it is large enough.
  void AddPiece(StepPiece piece);
  // Does not block. Returns what SendGradient does.
  absl::Status PollWrites();
  // Makes the frame that is being filled the last of the queue, and starts it when nothing is being written.
  void FlushFrame();
  void StartWrite();
  void StartRead();
  // Handles one operation that finishes within `wait`. False when there was none.
  bool Poll(absl::Duration wait);
  void HandleRead(bool ok);
  absl::Status HandleReply(const StepReplyFrame& reply);
  // Ends the stream and returns its status, which is never OK.
  absl::Status Close();

  const ChiefClient::StepOptions options_;
  const ParameterLayout layout_;
  const absl::Duration leave_limit_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  Operation start_, read_, write_, finish_, wake_;
  std::atomic<bool> interrupted_{false};
  grpc::Alarm alarm_;    // wakes the thread that polls, with wake_
  absl::Status status_;  // the first error; all later calls return it
  bool broken_ = false;  // the stream ended by itself
  bool closed_ = false;

  StepFrame frame_;  // being filled
  int64_t frame_bytes_ = 0;
  std::deque<grpc::ByteBuffer> frames_;
  bool first_frame_ = true;
  grpc::ByteBuffer received_;

  std::shared_ptr<AlignedBuffer> gradients_;  // flat
  // `gradients_` is the memory that the chief was offered.
  bool gradients_offered_ = false;
  SharedValues shared_values_;
  // The token's values lie in the chief's memory, and it has mapped what it was offered.
  bool shares_memory_ = false;
  std::shared_ptr<AlignedBuffer> encoded_;  // their 16-bit form; null when they travel as they are
  HeldEstimates estimates_;                 // of top-k compression
  std::vector<float*> token_estimates_;
  ReceivedValues values_;
  // Of the assignment, one for each variable.
  const std::vector<const float*>* token_values_ = nullptr;
  absl::optional<Assignment> assignment_;
  Fate fate_ = FATE_NONE;
  Token token_;  // the one that is being computed; slot_count 0 before the first
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_CHANNEL_H_
