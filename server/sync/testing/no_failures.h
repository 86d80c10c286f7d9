#ifndef LOCKSTEP_SERVER_SYNC_TESTING_NO_FAILURES_H_
#define LOCKSTEP_SERVER_SYNC_TESTING_NO_FAILURES_H_

#include "gtest/gtest.h"
#include "lockstep/server/sync/run_events.h"

namespace lockstep {

// RunEvents that fail the test if the run fails.
class NoFailures : public RunEvents {
 public:
  void OnEvent(const RunEvent& event) override {
    if (event.kind == RunEvent::kFailed) ADD_FAILURE() << event.status;
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_TESTING_NO_FAILURES_H_
