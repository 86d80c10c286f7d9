#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_PEER_AUTHORITY_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_PEER_AUTHORITY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/certificate.h"
#include "lockstep/common/security/tls_directory.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/revocable_call.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The authority that decides which peers a chief serves: it identifies each peer, and checks that the peer's role may
// make the call (access_table.h). It rereads the files of the TlsDirectory and of the tokens when they change. A
// certificate is valid until it expires or is revoked, or until its authority is no longer trusted. This also applies
// to existing connections: a long-lived call then ends within Options::period. Without a directory, every peer is
// served. Sweep must be called often. Thread-safe.
class PeerAuthority {
 public:
  struct Options {
    TlsDirectory directory{""};
    // File with tokens for viewers (token_file.h). If empty, there are none.
    std::string token_file;
    // Time between two checks of the files.
    absl::Duration period = absl::Seconds(1);
    // Both must outlive this object.
    FileSystem* fs = FileSystem::Real();
    Clock* clock = Clock::Real();
  };
  // The evidence of a peer's identity: its connection and the headers of its call.
  struct Evidence {
    // False over a unix socket, which only the chief's own user and root can use.
    bool over_tls = false;
    // The certificates that the peer presented, in PEM; empty if there are none.
    absl::string_view certificate;
    // The value of the header "authorization"; empty if it is absent.
    absl::string_view authorization;
  };

  // Returns InvalidArgument, naming the file and the error in it, if a file of the directory or of the tokens is
  // invalid.
  static absl::StatusOr<std::unique_ptr<PeerAuthority>> Create(const Options& options);

  // Returns true if there is no directory, so that every peer is trusted.
  bool trusts_all() const { return options_.directory.empty(); }
  // Returns the peer if it may call `method`. Errors: Unauthenticated if an anonymous peer may not call it, or if the
  // certificate or token is no longer valid; PermissionDenied if the peer's role may not call it.
  absl::StatusOr<CallPeer> Admit(const Evidence& evidence, absl::string_view method) ABSL_LOCKS_EXCLUDED(mutex_);
  // Registers a long-lived call, which is ended when its peer's certificate or token is no longer valid.
  void Watch(const CallPeer& peer, std::weak_ptr<RevocableCall> call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks the files if `period` has passed, and ends the calls whose peers are no longer trusted.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills in denied_calls and, with a directory, certificate_expires_ms.
  void FillCounters(v1::RunCounters* counters) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The contents of the files.
  struct Trust {
    TrustedAuthorities authorities;
    // The run that the chief's own certificate names; empty if it names none.
    std::string run;
    // The end of the validity of the chief's own certificate.
    absl::Time not_after;
    std::vector<std::string> tokens;
  };
  // The verdict on a certificate.
  struct Verdict {
    absl::Status status;
    PeerRole role = PeerRole::kAnonymous;
    std::string name;
    absl::Time not_after;
  };

  explicit PeerAuthority(const Options& options) : options_(options) {}

  absl::StatusOr<std::shared_ptr<const Trust>> ReadTrust() const;
  Verdict Judge(const Trust& trust, absl::string_view certificate) const;
  // Returns the verdict on a certificate, usually from the cache, because most certificates have been judged before.
  Verdict VerdictOn(absl::string_view certificate) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns OK as long as `proof`, a CallPeer::certificate, is valid.
  absl::Status CheckProof(const std::string& proof) ABSL_LOCKS_EXCLUDED(mutex_);
  CallPeer PeerOf(const Evidence& evidence, Verdict* verdict) ABSL_LOCKS_EXCLUDED(mutex_);
  void FollowFiles() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndUntrustedCalls() ABSL_LOCKS_EXCLUDED(mutex_);
  void CountRefusal(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  // Null without a directory.
  std::shared_ptr<const Trust> trust_ ABSL_GUARDED_BY(mutex_);
  // Verdicts based on `trust_`, by certificate.
  std::unordered_map<std::string, Verdict> verdicts_ ABSL_GUARDED_BY(mutex_);
  // The long-lived calls, by CallPeer::certificate.
  std::multimap<std::string, std::weak_ptr<RevocableCall>> watched_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string files_ ABSL_GUARDED_BY(mutex_);     // the contents that `trust_` was read from
  int64_t refusals_ ABSL_GUARDED_BY(mutex_) = 0;  // all
  int64_t logged_refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time logged_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_PEER_AUTHORITY_H_
