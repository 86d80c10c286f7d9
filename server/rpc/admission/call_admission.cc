#include "lockstep/server/rpc/admission/call_admission.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Returns all values of a property, concatenated.
std::string PropertyOf(const grpc::AuthContext& context, const char* name) {
  std::string text;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) text.append(value.data(), value.size());
  return text;
}

}  // namespace

absl::Status AdmitCall(PeerAuthority* authority, IncomingCall* call) {
  if (authority->trusts_all()) return absl::OkStatus();
  const std::shared_ptr<const grpc::AuthContext> context = call->context.auth_context();
  PeerAuthority::Evidence evidence;
  std::string certificates;
  if (context != nullptr && PropertyOf(*context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) != "insecure") {
    evidence.over_tls = true;
    // The second property lacks the peer's own certificate, or repeats it.
    certificates = absl::StrCat(PropertyOf(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                                PropertyOf(*context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME));
    evidence.certificate = certificates;
  }
  const auto& headers = call->context.client_metadata();
  const auto authorization = headers.find("authorization");
  if (authorization != headers.end()) {
    evidence.authorization = {authorization->second.data(), authorization->second.size()};
  }
  ASSIGN_OR_RETURN(call->peer, authority->Admit(evidence, call->context.method()));
  return absl::OkStatus();
}

}  // namespace lockstep
