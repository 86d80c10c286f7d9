#ifndef LOCKSTEP_SERVER_LOCAL_LOCAL_STEP_STREAM_H_
#define LOCKSTEP_SERVER_LOCAL_LOCAL_STEP_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

class AutoResetEvent;

// A Step stream to a chief in the same process. Send delivers frames on the worker's thread, with the gradients where
// the worker wrote them; replies refer to the values in the chief's memory. For one thread, except CancelWait and
// Cancel.
class LocalStepStream : public StepStream {
 public:
  // `chief` must outlive the stream. Errors: as for Sessions::OpenStep.
  static absl::StatusOr<std::unique_ptr<StepStream>> Open(Chief* chief, const ChiefClient::StepOptions& options);
  ~LocalStepStream() override;

  // Gradients are summed whole, as they arrive.
  FrameSizes sizes() const override { return FrameSizes(); }
  absl::Status Send(const StepFrame& frame) override;
  // Does nothing, because no frame is ever pending.
  absl::Status Poll(Receiver*) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override {}
  absl::Status Close() override;
  void CancelWait() override;
  void Cancel() override;

 private:
  LocalStepStream(bool sparse, std::shared_ptr<AutoResetEvent> event, std::shared_ptr<StepConnection> connection);

  // Closes the connection with the status `why`.
  absl::Status Break(absl::Status why);
  // Adds the values in the chief's memory to a reply with a token.
  void HandOver(StepReplyFrame* reply) const;

  // True if gradients are compressed as differences from estimates.
  const bool sparse_;
  const std::shared_ptr<AutoResetEvent> event_;
  const std::shared_ptr<StepConnection> connection_;
  absl::Status status_;  // why the stream was closed
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_LOCAL_LOCAL_STEP_STREAM_H_
