#ifndef LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_
#define LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_

#include <string>

#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// The peer that makes a call. A value.
struct CallPeer {
  PeerRole role = PeerRole::kLocal;
  // The identity that sessions are bound to. For a chief with TLS, it is the URI of the certificate, or "local",
  // "token" or "anonymous". It is empty for a chief without TLS, which does not distinguish its peers.
  std::string name;
  // The peer's proof: its certificates in PEM, or the header with its token. Empty if it has neither.
  std::string certificate;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_CALL_PEER_H_
