#ifndef LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISED_SESSION_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISED_SESSION_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/session.h"

namespace lockstep::train {

// A session that remembers what its last Run has done. Owns the session. Thread-safety: that of Session.
class SupervisedSession : public SessionDecorator {
 public:
  explicit SupervisedSession(HeldSession held) : SessionDecorator(held.session.get()), held_(std::move(held)) {}

  absl::StatusOr<StepResult> Run(const TrainOp& op) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::StatusOr<StepResult> result = SessionDecorator::Run(op);
    if (result.ok()) {
      MutexLock lock(&mutex_);
      last_ = *result;
    }
    return result;
  }

  // nullopt before the first Run.
  absl::optional<StepResult> last() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return last_;
  }
  const HeldSession& held() const { return held_; }

 private:
  const HeldSession held_;
  mutable Mutex mutex_;
  absl::optional<StepResult> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISED_SESSION_H_
