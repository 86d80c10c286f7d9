#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_HTTP2_LIMITS_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_HTTP2_LIMITS_H_

#include "absl/status/status.h"

namespace lockstep {

// Limits for HTTP/2 servers that gRPC 1.51 lacks. gRPC counts the headers of each frame separately, allows 16 MiB in a
// frame until the peer confirms its settings, and does not count calls that the peer has reset, so a few bytes from a
// peer can take up a megabyte (CVE-2023-33953, CVE-2023-44487). A connection that exceeds a limit is closed. The limits
// apply to every server of the process, with and without TLS, and cost nothing per message. http2_limits.cc replaces
// six functions of gRPC's shared library, as the dynamic linker allows (docs/decisions/0014-limits-inside-grpc.md).
//
// Maximum size of a request's headers, which must arrive in one frame. Each header counts 32 bytes more than its name
// and value, as in HTTP/2.
constexpr int kMaxHeaderBytes = 8192;
// Maximum number of calls that gRPC holds for a connection: those in progress, and those that have ended but are not
// yet destroyed.
constexpr int kMaxLivingCallsPerConnection = 256;
// While gRPC holds more than kManyLivingCalls calls for all connections together, a connection may have only
// kFewLivingCallsPerConnection.
constexpr int kManyLivingCalls = 1024;
constexpr int kFewLivingCallsPerConnection = 16;

// Returns FailedPrecondition if this version of gRPC lacks the limits and its functions cannot be replaced.
absl::Status CheckHttp2Limits();

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_HTTP2_LIMITS_H_
