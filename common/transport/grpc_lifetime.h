#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_LIFETIME_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_LIFETIME_H_

namespace lockstep {

// gRPC stays from the first call on until the process ends. Whoever makes a channel or a server calls it first.
// Else gRPC ends its threads with its last channel or server, and waits for them: up to ten seconds for the one that
// polls a socket which was full when its server ended (the backup poller of 1.51). Thread-safe.
void KeepGrpc();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_LIFETIME_H_
