#ifndef LOCKSTEP_CAPI_TLS_API_H_
#define LOCKSTEP_CAPI_TLS_API_H_

#include "absl/status/statusor.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Returns the credentials for this process's connections, from the last lockstep_use_tls or from LOCKSTEP_TLS_DIR. If a
// file is wrong, returns InvalidArgument naming the file. Thread-safe.
absl::StatusOr<Credentials> LibraryCredentials();

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_TLS_API_H_
