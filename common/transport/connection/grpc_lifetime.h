#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_

namespace lockstep {

// Keeps gRPC alive from the first call until the process ends. Call this before creating a channel or a server.
// Otherwise gRPC stops its threads along with its last channel or server and waits for them. This takes up to ten
// seconds if a socket was full when its server shut down, because a thread still polls it (the backup poller of gRPC
// 1.51). Also forwards gRPC's log lines to this process's log, but only a few per ten seconds, because peers can cause
// many of them. Thread-safe.
void KeepGrpc();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_
