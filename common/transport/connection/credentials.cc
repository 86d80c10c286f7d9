#include "lockstep/common/transport/connection/credentials.h"

#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace lockstep {

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForClient() const { return grpc::InsecureChannelCredentials(); }

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const { return grpc::InsecureServerCredentials(); }

}  // namespace lockstep
