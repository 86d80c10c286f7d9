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

// Return the bytes of a message, and a message that splits the bytes into a random number of slices.
std::string BytesOf(const grpc::ByteBuffer& message);
grpc::ByteBuffer MessageOf(const std::string& bytes, Random* random);

// A Step stream over the simulated network, like GrpcStepStream over gRPC. Encodes frames, and decodes replies. Sends
// frames one at a time, and only during calls to this object. Not thread-safe, except for CancelWait and Cancel.
class SimulatedStepStream : public StepStream {
 public:
  // If there was no connection, `call` is null and `why` is the error.
  SimulatedStepStream(Process* client, std::shared_ptr<Call> call, absl::Status why);
  ~SimulatedStepStream() override;

  // Small sizes, so that a worker sends many frames.
  FrameSizes sizes() const override;
  absl::Status Send(const StepFrame& frame) override;
  absl::Status Poll(Receiver* receiver) override;
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override;
  absl::Status Close() override;
  void CancelWait() override;
  void Cancel() override;

 private:
  void StartWrite();
  // See GrpcStepStream::HandleOne.
  bool HandleOne(absl::Duration wait, Receiver* receiver);
  void HandleReply(Receiver* receiver);
  void Break();

  Process* const client_;
  const std::shared_ptr<Call> call_;
  std::deque<grpc::ByteBuffer> frames_;  // to be written
  // The state of a write, which may outlive the stream.
  struct Writing {
    grpc::ByteBuffer message;
    bool pending = false;
    bool ended = false;
  };
  const std::shared_ptr<Writing> writing_ = std::make_shared<Writing>();
  bool paused_ = false;
  bool wait_cancelled_ = false;
  absl::Status status_;  // the first error
  bool closed_ = false;
  bool contributed_ = false;  // on this stream
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_STEP_STREAM_H_
