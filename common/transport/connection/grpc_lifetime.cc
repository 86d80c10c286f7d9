#include "lockstep/common/transport/connection/grpc_lifetime.h"

#include "grpc/grpc.h"

namespace lockstep {

void KeepGrpc() {
  [[maybe_unused]] static const bool kept = [] {
    grpc_init();
    return true;
  }();
}

}  // namespace lockstep
