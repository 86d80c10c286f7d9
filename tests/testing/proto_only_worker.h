#ifndef LOCKSTEP_TESTS_TESTING_PROTO_ONLY_WORKER_H_
#define LOCKSTEP_TESTS_TESTING_PROTO_ONLY_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/v1/chief.grpc.pb.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A worker as a third party would write it: synchronous, with the generated stub of proto/lockstep/v1/chief.proto, and
// without Lockstep's transport. It uses Lockstep's model and batches. Reports errors as fatal GoogleTest failures. Must
// be used by only one thread.
class ProtoOnlyWorker {
 public:
  using Stream = grpc::ClientReaderWriter<v1::StepRequest, v1::StepReply>;

  ProtoOnlyWorker(const std::string& address, std::string name, uint64_t incarnation);

  // Makes Open bring initial values for all variables: element i of each is `scale` * (1 + i % 5).
  void BringValues(float scale) { scale_ = scale; }
  // Gets the configuration, creates the model and opens a session.
  void Open();
  // Opens a stream, requests tokens and computes them until the run is over.
  void Train();
  // Must be called if the run has other workers.
  void AllowOthers() { alone_ = false; }

  // Opens a new stream in the session without sending a frame.
  std::unique_ptr<Stream> NewStream(grpc::ClientContext* context) { return stub_->Step(context); }
  v1::StepRequest AskForToken() const;
  // Reads up to the next token, and keeps the values that arrive before it. Returns false if the stream has ended or
  // the run is over.
  bool ReadToken(Stream* stream, v1::Token* token);
  // Returns a frame without content for the block of `token`.
  v1::StepRequest NewRequest(const v1::Token& token) const;
  // Computes the whole contribution and returns it in one frame, with `end` set. The pieces have the minimum size.
  v1::StepRequest Compute(const v1::Token& token);

  v1::ChiefService::Stub* stub() { return stub_.get(); }
  const v1::OpenSessionRequest& open_request() const { return open_; }
  const v1::OpenSessionReply& session() const { return session_; }
  const v1::ModelSpec& model() const { return open_.model(); }
  // The last reply that ReadToken read.
  const v1::StepReply& reply() const { return reply_; }
  std::map<v1::ContributionResult, int>& results() { return results_; }

 private:
  // Calls OpenSession, repeatedly while the chief is still initializing the model that another worker has declared.
  void CallOpenSession();
  // Returns the initial value that this worker brings for a variable.
  std::vector<float> InitialValue(const v1::VariableSpec& variable) const;
  // Returns the indexes of the model's variables in the byte order of their names.
  std::vector<int> OrderOfNames() const;
  std::string InitialDigest() const;
  void SendInitialValues();
  // Computes the canary: the batch of step 0 and slot 0, with values that the chief provides for it.
  void ComputeCanary();
  void TakeValues(const v1::StepReply& reply);
  // Returns true if the variable is neither trainable nor named by an update op.
  bool IsConstant(uint32_t variable) const;
  const AlignedBuffer& ValueOf(int64_t step, uint32_t variable) const;
  void CallTheRest(int64_t step);
  // Calls ReadVariables for all variables. If this is the only worker, compares them with the values that it has
  // received for this step.
  void ReadVariables(int64_t step);

  const std::unique_ptr<v1::ChiefService::Stub> stub_;
  config::v1::RunSpec config_;
  Workload workload_;
  v1::OpenSessionRequest open_;
  v1::OpenSessionReply session_;
  v1::StepReply reply_;
  // Indexed by step. Values of the next step may arrive before a token of this step.
  std::map<int64_t, std::vector<AlignedBuffer>> values_;
  // The values of the constant variables, which are the same at all steps.
  std::vector<AlignedBuffer> constants_;
  std::map<v1::ContributionResult, int> results_;
  bool alone_ = true;
  // 0 if the worker brings no values.
  float scale_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_PROTO_ONLY_WORKER_H_
