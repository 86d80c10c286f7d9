#ifndef LOCKSTEP_SERVER_SYNC_TESTING_FRAME_WORKER_H_
#define LOCKSTEP_SERVER_SYNC_TESTING_FRAME_WORKER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The model of FrameWorker: variables 0 "w" [3], 1 "mean" [2] (not trained, one ASSIGN update op), 2 "big" [65540],
// which has two segments.
v1::ModelSpec FrameModel();
constexpr int64_t kFrameModelSegments = 4;

// Returns the policy of a run at step 0 with this many slots, without an audit.
std::unique_ptr<StepPolicy> FramePolicy(int64_t slots, absl::Duration lease = absl::Seconds(5));

// A worker for tests that exchanges frames with a StepConnection, one call at a time, and keeps the replies. Its
// gradient for (step, slot) is (step + 1) * (slot + 1) in every element, and its loss is slot + 1. For use by one
// thread; the chief's calls may come from other threads.
class FrameWorker {
 public:
  using Connector = std::function<std::shared_ptr<StepConnection>(std::shared_ptr<StepListener>)>;

  FrameWorker(uint64_t session, int64_t generation, const Connector& connect);
  // Closes the connection.
  ~FrameWorker();

  // Asks for a token without sending a contribution.
  absl::Status Ask(int64_t startup_delay_steps = 0);
  // Reads all available replies.
  void Drain();
  // Sends the whole contribution for the newest token in one frame, then calls Drain.
  absl::Status Push();
  // Does the same for any token.
  absl::Status Push(const v1::Token& token);
  absl::Status Leave();
  // Makes its gradients of "big" differ in the last bit from now on, as if its processor were faulty.
  void Err() { errs_ = true; }
  // Forgets the token after its contribution has been sent with Send.
  void ForgetToken() { token_.reset(); }

  // Returns a frame for the block of `token` that otherwise contains only the session id and the generation.
  StepFrame NewFrame(const v1::Token& token) const;
  void AddReports(StepFrame* frame) const;
  // Adds the gradient of elements [offset, offset + elements) of a variable, computed for the step and block of
  // `frame`.
  void AddPiece(int64_t variable, int64_t offset, int64_t elements, StepFrame* frame);
  void AddAllPieces(StepFrame* frame);
  // Sends a frame. If the frame must wait, no other frame may be sent until Resume has sent it again.
  absl::Status Send(const StepFrame& frame);
  bool waits() const { return waiting_.has_value(); }
  // Sends the waiting frame again if the chief has asked for it. Otherwise, returns false.
  bool Resume();
  StepConnection* connection() { return connection_.get(); }

  // The token, the results and the end of the run that have arrived since the last Push or Ask.
  const absl::optional<v1::Token>& token() const { return token_; }
  const std::vector<v1::ContributionResult>& results() const { return results_; }
  bool finished() const { return finished_; }
  const std::string& finish_message() const { return finish_message_; }
  // Return an element of a variable at the newest step whose values have arrived completely, and the number of that
  // step.
  float value(int variable, int64_t element) const;
  int64_t values_step() const;
  // Returns the number of pieces that arrived for each step.
  const std::map<int64_t, int>& pieces() const { return pieces_; }

  // Returns the settings of the newest token that had any.
  const absl::optional<v1::GradientSettings>& settings() const { return settings_; }
  // Returns the memory of the newest token's values.
  const absl::optional<v1::SharedMemoryHandle>& values_memory() const { return values_memory_; }

  // Return the number of OnReplyReady calls, and the status of OnClosed.
  int rings() const;
  absl::Status closed() const;
  // Returns true if the chief has also discarded the replies that this worker has not read.
  bool cancelled() const;

 private:
  class Listener;

  const uint64_t session_;
  const int64_t generation_;
  const ParameterLayout layout_;
  const std::shared_ptr<Listener> listener_;
  std::shared_ptr<StepConnection> connection_;
  std::map<int64_t, std::vector<float>> values_;  // by step, flat
  std::map<int64_t, int> pieces_;
  std::vector<std::unique_ptr<std::vector<float>>> gradients_;
  absl::optional<v1::Token> token_;
  absl::optional<StepFrame> waiting_;
  absl::optional<v1::SharedMemoryHandle> values_memory_;
  absl::optional<v1::GradientSettings> settings_;
  std::vector<v1::ContributionResult> results_;
  bool finished_ = false;
  bool errs_ = false;
  std::string finish_message_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_TESTING_FRAME_WORKER_H_
