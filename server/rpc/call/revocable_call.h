#ifndef LOCKSTEP_SERVER_RPC_CALL_REVOCABLE_CALL_H_
#define LOCKSTEP_SERVER_RPC_CALL_REVOCABLE_CALL_H_

#include "absl/status/status.h"

namespace lockstep {

// A long-lived call that may have to end because its peer is no longer trusted.
class RevocableCall {
 public:
  virtual ~RevocableCall() = default;
  // Ends the call with this status. Called on any thread; the call may already have ended.
  virtual void OnRevoked(const absl::Status& why) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_REVOCABLE_CALL_H_
