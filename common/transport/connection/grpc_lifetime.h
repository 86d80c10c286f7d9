#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_

namespace lockstep {

// Keeps gRPC from the first call until the process ends. Must be called before a channel or a server is created.
// Otherwise gRPC ends its threads with its last channel or server, and waits for them: up to ten seconds for the thread
// that polls a socket which was full when its server ended (the backup poller of 1.51). Also sends gRPC's log lines to
// this process's log, a few in ten seconds: peers cause many of them. Thread-safe.
void KeepGrpc();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_GRPC_LIFETIME_H_
