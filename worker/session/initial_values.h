#ifndef LOCKSTEP_WORKER_SESSION_INITIAL_VALUES_H_
#define LOCKSTEP_WORKER_SESSION_INITIAL_VALUES_H_

#include <atomic>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The initial values that a worker brings for a new run (docs/wire.md, "Initial values"). Immutable.
class InitialValues {
 public:
  // Takes values, in the types of their variables, by the names of these.
  explicit InitialValues(std::map<std::string, Tensor> values);

  // Returns the value of OpenSessionRequest.initial_values_digest.
  const std::string& digest() const { return digest_; }
  // Sends the values to the chief that wants them in `session`, its reply for a worker with this model. Errors: those
  // of ChiefClient::SetInitialValues; InvalidArgument for a value of no variable; Cancelled soon after `stop` becomes
  // true.
  absl::Status Send(const v1::ModelSpec& model, const v1::OpenSessionReply& session, const std::atomic<bool>& stop,
                    ChiefClient* client) const;

 private:
  const std::map<std::string, Tensor> values_;
  const std::string digest_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_INITIAL_VALUES_H_
