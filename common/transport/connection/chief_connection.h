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

// A client's connection to its chief. Each attempt to reach a chief that is not connected gets a channel of its own: a
// channel that has failed waits up to two minutes before it resolves the host's name again, and a call that waits for
// it never learns why. After an attempt that took all its time, a patient link connects in the background, for a
// distant chief, while attempts stay short and resolve the name again: a chief may have left an address that neither
// answers nor refuses. Thread-safe.
class ChiefConnection {
 public:
  struct Options {
    Credentials credentials;
    // The time of the first attempt, and of twice a short one next to a patient link.
    absl::Duration first_limit = absl::Seconds(2);
    // The longest time of a patient link (ConnectLimit).
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
    // The start of the attempt, or of the patient link.
    absl::Time began;
    // Time limit of the call.
    absl::Duration limit;
  };

  ChiefConnection(std::string target, const Options& options);

  // Returns the link on which the chief last answered, or a link that connects at its first call.
  std::shared_ptr<const Link> link() ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a call that looks for the chief. The call must not wait for the connection.
  Attempt Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that the attempt's call ended with `status`. Returns it with a human-readable reason. Returns Unavailable if
  // nothing answered. Returns Unauthenticated, with exit code 2, if no attempt can succeed because one end refuses the
  // other's certificate or only one end speaks TLS. A client that the chief has answered before gets Unavailable
  // instead, because a certificate may be in the middle of its replacement; if the chief itself refuses the
  // certificate, this lasts three seconds. May block for a second to find the reason.
  absl::Status End(const Attempt& attempt, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<const Link> NewLink(absl::Duration connect_limit) const;
  // Makes a patient link, unless there is one that may still connect. Returns the link that it replaces.
  std::shared_ptr<const Link> StartPatientLink(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error of a call that the chief has refused, or whose connection one end has refused, because of a
  // certificate.
  absl::Status RefusedByChief(const Attempt& attempt, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefusedInHandshake(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string target_;
  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const Link> link_ ABSL_GUARDED_BY(mutex_);
  // Null unless an attempt took all its time and no chief has answered since.
  std::shared_ptr<const Link> patient_ ABSL_GUARDED_BY(mutex_);
  absl::Time patient_since_ ABSL_GUARDED_BY(mutex_);
  ConnectLimit limit_ ABSL_GUARDED_BY(mutex_);
  bool has_answered_ ABSL_GUARDED_BY(mutex_) = false;
  // Time of the first refusal since the last answer.
  absl::optional<absl::Time> refused_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHIEF_CONNECTION_H_
