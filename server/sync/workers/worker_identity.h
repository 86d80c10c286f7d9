#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_IDENTITY_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_IDENTITY_H_

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/v1/build.pb.h"

namespace lockstep {

// A worker's description of itself, for display.
struct WorkerIdentity {
  WorkerIdentity() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is an identity.
  WorkerIdentity(std::string name_of_worker) : name(std::move(name_of_worker)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  WorkerIdentity(const char* name_of_worker) : name(name_of_worker) {}

  // Returns "worker-0 on host3" or "worker-17@host3", without anything that a terminal could interpret as a command.
  std::string ToString() const {
    const bool said = host.empty() || absl::EndsWith(name, absl::StrCat("@", host));
    return absl::CHexEscape(said ? name : absl::StrCat(name, " on ", host));
  }

  std::string name;
  std::string host;     // the machine
  std::string address;  // of its Step stream, as the chief sees it; empty in process
  v1::BuildInfo build;  // empty in SyncReplicas if it is the chief's
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_IDENTITY_H_
