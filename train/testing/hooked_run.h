#ifndef LOCKSTEP_TRAIN_TESTING_HOOKED_RUN_H_
#define LOCKSTEP_TRAIN_TESTING_HOOKED_RUN_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/testing/fake_session.h"

namespace lockstep::train {

// Runs a program with hooks on a FakeSession, from start to end.
class HookedRun {
 public:
  // Calls Begin and opens the session; `status` returns the result. The hooks must outlive this object.
  explicit HookedRun(std::vector<Hook*> hooks, FakeSession::Options options = {}) : base_(std::move(options)) {
    status_ = Start(std::move(hooks));
  }

  // Runs up to `count` steps. Stops at the first error and returns it.
  absl::Status Run(int count = 1) {
    RETURN_IF_ERROR(status_);
    for (int i = 0; i < count; ++i) RETURN_IF_ERROR(hooked_->Run(TrainOp()).status());
    return absl::OkStatus();
  }
  // Runs a program's loop until it should stop, but for at most `limit` steps.
  absl::Status RunToTheEnd(int limit = 100000) {
    RETURN_IF_ERROR(status_);
    for (int i = 0; i < limit && !hooked_->ShouldStop(); ++i) {
      const absl::Status status = hooked_->Run(TrainOp()).status();
      if (absl::IsOutOfRange(status)) return absl::OkStatus();
      RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }
  absl::Status Close() { return hooked_->Close(); }
  bool ShouldStop() { return hooked_->ShouldStop(); }

  const absl::Status& status() const { return status_; }
  FakeSession& base() { return base_; }

 private:
  absl::Status Start(std::vector<Hook*> hooks) {
    RETURN_IF_ERROR(BeginHooks(hooks));
    HookedSession::Options options;
    options.hooks = std::move(hooks);
    if (base_.is_chief()) options.gate = &base_;
    ASSIGN_OR_RETURN(hooked_, HookedSession::Open(&base_, std::move(options)));
    return absl::OkStatus();
  }

  FakeSession base_;
  std::unique_ptr<HookedSession> hooked_;
  absl::Status status_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_HOOKED_RUN_H_
