#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHIEF_CONNECTION_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHIEF_CONNECTION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/channel.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/transport/connection/connect_limit.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/v1/chief.grpc.pb.h"

namespace lockstep {

// A client's connection to its chief. Each attempt to reach a chief that is not connected gets a channel of its own,
// because a channel that has failed waits up to two minutes before it resolves the host's name again, and a call that
// waits for such a channel never learns why it failed. After an attempt that used up its time limit, a "patient" link
// connects in the background, in case the chief is distant. Meanwhile, attempts stay short and resolve the name again,
// in case the chief has left an address that neither answers nor refuses connections. Thread-safe.
class ChiefConnection {
 public:
  struct Options {
    Credentials credentials;
    // Time limit of the first attempt. A short attempt, made while a patient link connects, gets half of it.
    absl::Duration first_limit = absl::Seconds(2);
    // Maximum time limit of a patient link (ConnectLimit).
    absl::Duration most = absl::Seconds(20);
  };
  struct Link {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::ChiefService::Stub> stub;
  };
  struct Attempt {
    std::shared_ptr<const Link> link;
    bool fresh = false;     // the link was not connected before this attempt, or is a patient one
    bool is_short = false;  // a patient link connects next to it
    // Start time of the attempt, or of the patient link if the attempt uses it.
    absl::Time began;
    // Time limit of the call.
    absl::Duration limit;
  };

  ChiefConnection(std::string target, const Options& options);

  // Returns the link on which the chief last answered, or a link that connects on its first call.
  std::shared_ptr<const Link> link() ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins an attempt to reach the chief. The attempt's call must not be set to wait for the connection
  // (wait_for_ready).
  Attempt Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the attempt's call ended with `status`, and returns that status with a human-readable reason. Returns
  // Unavailable if nothing answered. Returns Unauthenticated, with exit code 2, if no attempt can succeed because one
  // end refuses the other's certificate or only one end speaks TLS. A client that the chief has answered before gets
  // Unavailable instead, because a certificate may be in the middle of being replaced; if the chief itself refuses the
  // certificate, this lasts only three seconds. May block for a second to find the reason.
  absl::Status End(const Attempt& attempt, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<const Link> NewLink(absl::Duration connect_limit) const;
  // Starts a patient link, unless there is one that may still connect. Returns the link that it replaces, or null.
  std::shared_ptr<const Link> StartPatientLink(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Return the error for a certificate that the chief refused in the call, or that one end refused in the handshake.
  absl::Status RefusedByChief(const Attempt& attempt, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefusedInHandshake(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string target_;
  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const Link> link_ ABSL_GUARDED_BY(mutex_);
  // Null unless an attempt has used up its time limit and no chief has answered since.
  std::shared_ptr<const Link> patient_ ABSL_GUARDED_BY(mutex_);
  absl::Time patient_since_ ABSL_GUARDED_BY(mutex_);
  ConnectLimit limit_ ABSL_GUARDED_BY(mutex_);
  bool has_answered_ ABSL_GUARDED_BY(mutex_) = false;
  // Time of the first refusal since the last answer.
  absl::optional<absl::Time> refused_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHIEF_CONNECTION_H_
