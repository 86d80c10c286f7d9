#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_STATUS_CONVERSION_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_STATUS_CONVERSION_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace lockstep {

// The status codes of gRPC and Abseil have the same numeric values.
inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_STATUS_CONVERSION_H_
