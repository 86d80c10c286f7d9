#ifndef LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_
#define LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/tls_directory.h"

namespace lockstep {

// Makes one connection to `target` ("host:port"), to find out why calls over it fail: gRPC reports neither why the peer
// refused this process's certificate nor, in most cases, why the peer's was refused. With an empty directory it only
// finds out if the peer speaks TLS. Blocks for `limit` at most.
//
// Returns Unauthenticated with a reason that repeating the call does not remove: a certificate that either end refuses,
// or TLS at one end only. OK: no such reason was found; the peer may be absent.
absl::Status DiagnoseTls(const std::string& target, const TlsDirectory& directory, FileSystem* fs,
                         absl::Duration limit);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_TLS_DIAGNOSIS_H_
