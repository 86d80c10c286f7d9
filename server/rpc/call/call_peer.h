#ifndef LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_
#define LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_

#include <string>

#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// The peer that makes a call. A value.
struct CallPeer {
  PeerRole role = PeerRole::kLocal;
  // The identity that sessions are bound to: the URI of the certificate, or "local", "token" or "anonymous" at a chief
  // with TLS. Empty at a chief without TLS, whose peers are not distinguished.
  std::string name;
  // The peer's proof: its certificates in PEM, or the header with its token; empty without either.
  std::string certificate;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_
