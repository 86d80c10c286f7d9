#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_STEP_STREAM_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_STEP_STREAM_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/process.h"

namespace lockstep {
namespace simulation {

// The bytes of a message, and a message of bytes, in as many slices as are drawn.
std::string BytesOf(const grpc::ByteBuffer& message);
grpc::ByteBuffer MessageOf(const std::string& bytes, Random* random);

// A Step stream over the simulated network, as GrpcStepStream is one over gRPC: frames are encoded, leave one after the
// other, and only inside its calls; replies are decoded. For one thread, but for Interrupt and Cancel.
class SimulatedStepStream : public StepStream {
 public:
  // `call` is null when there was no connection, and `why` says so.
  SimulatedStepStream(Process* client, std::shared_ptr<Call> call, absl::Status why);
  ~SimulatedStepStream() override;

  // Small, so that what a worker sends is in many frames.
  FrameSizes sizes() const override;
  absl::Status Send(const StepFrame& frame) override;
  absl::Status Poll(Receiver* receiver) override;
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override;
  absl::Status Close() override;
  void Interrupt() override;
  void Cancel() override;

 private:
  void StartWrite();
  // As GrpcStepStream::HandleOne.
  bool HandleOne(absl::Duration wait, Receiver* receiver);
  void HandleReply(Receiver* receiver);
  void Break();

  Process* const client_;
  const std::shared_ptr<Call> call_;
  std::deque<grpc::ByteBuffer> frames_;  // to be written
  // The end of a write, which outlives the stream.
  struct Writing {
    grpc::ByteBuffer message;
    bool pending = false;
    bool ended = false;
  };
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
  bool paused_ = false;
  bool interrupted_ = false;
  absl::Status status_;  // the first error
  bool closed_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_STEP_STREAM_H_
