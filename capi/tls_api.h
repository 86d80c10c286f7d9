#ifndef LOCKSTEP_CAPI_TLS_API_H_
#define LOCKSTEP_CAPI_TLS_API_H_

#include "absl/status/statusor.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Returns the credentials of this process's connections: those of the last lockstep_use_tls, or of LOCKSTEP_TLS_DIR.
// InvalidArgument names the file that is wrong. Thread-safe.
absl::StatusOr<Credentials> LibraryCredentials();

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_TLS_API_H_
