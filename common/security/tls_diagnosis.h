#ifndef LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_
#define LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/tls_directory.h"

namespace lockstep {

// Connects to `target` ("host:port") to find out why calls to it fail. gRPC does not report why the peer refused this
// process's certificate and, in most cases, why this process refused the peer's. With an empty directory, finds out
// only whether the peer speaks TLS. Blocks for at most `limit`.
//
// Returns Unauthenticated if repeating the call cannot help, because either end refuses the other's certificate, or
// because only one end speaks TLS. Returns OK if there is no such reason; the peer may be absent.
absl::Status DiagnoseTls(const std::string& target, const TlsDirectory& directory, FileSystem* fs,
                         absl::Duration limit);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_
