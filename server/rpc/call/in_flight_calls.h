#ifndef LOCKSTEP_SERVER_RPC_CALL_IN_FLIGHT_CALLS_H_
#define LOCKSTEP_SERVER_RPC_CALL_IN_FLIGHT_CALLS_H_

#include "lockstep/common/base/mutex.h"

namespace lockstep {

// A counter of the existing calls of a server, including those that wait for a client. A completion queue must not be
// shut down while any call exists, because an operation on a queue that is shut down aborts the process. Thread-safe.
class InFlightCalls {
 public:
  // A member of a call, which counts the call as long as it exists.
  class Member {
   public:
    explicit Member(InFlightCalls* living) : living_(living) { living_->Change(+1); }
    ~Member() { living_->Change(-1); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    InFlightCalls* const living_;
  };

  void WaitUntilNone() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (count_ > 0) changed_.Wait(&mutex_);
  }

 private:
  void Change(int difference) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    count_ += difference;
    changed_.SignalAll();
  }

  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_IN_FLIGHT_CALLS_H_
