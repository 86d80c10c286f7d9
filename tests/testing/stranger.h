#ifndef LOCKSTEP_TESTS_TESTING_STRANGER_H_
#define LOCKSTEP_TESTS_TESTING_STRANGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor/aligned_buffer.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "proto/chief.grpc.pb.h"
#include "worker/session/training_worker.h"

namespace lockstep {

// A worker as a stranger would write it: the generated stub of proto/chief.proto, synchronous, and nothing of
// Lockstep's own transport. Its model and its batches are Lockstep's. Failures are GoogleTest's, fatal ones. For one
// thread.
class Stranger {
 public:
  using Stream = grpc::ClientReaderWriter<StepRequest, StepReply>;

  Stranger(const std::string& address, std::string name, uint64_t incarnation);

  // Asks for the configuration, makes the model and opens a session.
  void Open();
  // Opens a stream, asks for tokens and computes them until the run is over.
  void Train();

  // A new stream of the session, without a frame.
  std::unique_ptr<Stream> NewStream(grpc::ClientContext* context) { return stub_->Step(context); }
  StepRequest AskForToken() const;
  // Reads to the next token and takes the values that come before it; false when the stream ended or the run is over.
  bool ReadToken(Stream* stream, Token* token);
  // A frame for the block of `token` with nothing in it.
  StepRequest NewRequest(const Token& token) const;
  // The whole contribution, computed, in one frame with `end`: the pieces are as small as they may be.
  StepRequest Compute(const Token& token);

  ChiefService::Stub* stub() { return stub_.get(); }
  const OpenSessionRequest& open_request() const { return open_; }
  const OpenSessionReply& session() const { return session_; }
  const ModelSpec& model() const { return open_.model(); }
  // The last reply that ReadToken read.
  const StepReply& reply() const { return reply_; }
  std::map<Fate, int>& fates() { return fates_; }

 private:
  void TakeValues(const StepReply& reply);
  void CallTheRest(int64_t step);

  const std::unique_ptr<ChiefService::Stub> stub_;
  RunConfig config_;
  TrainingWorker::Task task_;
  OpenSessionRequest open_;
  OpenSessionReply session_;
  StepReply reply_;
  // By step. Values of the next step may come before a token of this one.
  std::map<int64_t, std::vector<AlignedBuffer>> values_;
  std::map<Fate, int> fates_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_STRANGER_H_
