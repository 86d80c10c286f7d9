#ifndef LOCKSTEP_COMMON_SECURITY_CERTIFICATE_H_
#define LOCKSTEP_COMMON_SECURITY_CERTIFICATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/security/peer_identity.h"

// OpenSSL's types.
struct X509_crl_st;
struct x509_st;
struct x509_store_st;

namespace lockstep {

// An X.509 certificate, with the intermediate certificates up to its authority. Immutable, so thread-safe.
class Certificate {
 public:
  // `pem` contains the certificate, followed by its intermediates. InvalidArgument if it contains none.
  static absl::StatusOr<Certificate> FromPem(absl::string_view pem);

  // The identity in the first URI that has one (ParsePeerUri); absent if none does.
  const absl::optional<PeerIdentity>& identity() const { return identity_; }
  // Name of the certificate in messages: its identity or, without one, its subject.
  const std::string& name() const { return name_; }
  absl::Time not_before() const { return not_before_; }
  absl::Time not_after() const { return not_after_; }
  // Returns true if the certificate was issued for this host name or address.
  bool IsForHost(const std::string& host) const;
  // OpenSSL's object, owned by this one.
  x509_st* x509() const { return chain_.front().get(); }
  const std::vector<std::shared_ptr<x509_st>>& chain() const { return chain_; }

 private:
  Certificate() = default;

  std::vector<std::shared_ptr<x509_st>> chain_;  // the certificate itself comes first
  absl::optional<PeerIdentity> identity_;
  std::string name_;
  absl::Time not_before_, not_after_;
};

// The authorities that a process trusts, and the certificates that they have revoked. Immutable, so thread-safe.
class TrustedAuthorities {
 public:
  // `authorities`: certificates in PEM. `revocations`: lists of revoked certificates in PEM; may be empty. The age of a
  // list is not checked. InvalidArgument names what cannot be read.
  static absl::StatusOr<TrustedAuthorities> FromPem(absl::string_view authorities, absl::string_view revocations);

  // Returns OK if an authority has issued the certificate, it is valid at `now`, and it is not revoked. Otherwise
  // Unauthenticated with the reason.
  absl::Status Verify(const Certificate& certificate, absl::Time now) const;

 private:
  TrustedAuthorities() = default;

  std::shared_ptr<x509_store_st> store_;
  std::vector<std::shared_ptr<X509_crl_st>> revocations_;
};

// Checks that a certificate, which is known to be valid, belongs to the chief that a client with identity `own` expects
// at `host`. It must name the role chief of the same run, or the host and no role at all. Otherwise returns
// Unauthenticated with the reason. If the client's own certificate has no role, the runs are not compared.
absl::Status CheckIsChief(const Certificate& certificate, const std::string& host,
                          const absl::optional<PeerIdentity>& own);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_CERTIFICATE_H_
