#include "lockstep/common/transport/connection/credentials.h"

#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/grpc_lifetime.h"
#include "lockstep/common/transport/connection/status_conversion.h"

namespace lockstep {
namespace {

using Provider = grpc::experimental::FileWatcherCertificateProvider;

constexpr unsigned int kReadAgainSeconds = 1;

// A verifier that accepts a server if its certificate, which gRPC has already found valid, belongs to the client's
// chief.
class ChiefVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  ChiefVerifier(TlsDirectory directory, std::string host) : directory_(std::move(directory)), host_(std::move(host)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const grpc::string_ref pem = request->peer_cert();
    const auto certificate = Certificate::FromPem({pem.data(), pem.size()});
    if (!certificate.ok()) {
      *sync_status = ToGrpc(certificate.status());
      return true;
    }
    absl::optional<PeerIdentity> own;
    if (const auto read = directory_.ReadCertificate(FileSystem::Real()); read.ok()) own = read->identity();
    *sync_status = ToGrpc(CheckIsChief(*certificate, host_, own));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const TlsDirectory directory_;
  const std::string host_;
};

bool IsUnixTarget(absl::string_view target) {
  return absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:");
}

// Returns the host in "host:port", without brackets.
std::string HostOf(const std::string& target) {
  std::string host = target.substr(0, target.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

// The credential files. A single gRPC thread reads them for all connections.
class Credentials::State {
 public:
  State(TlsDirectory directory, std::string token) : directory_(std::move(directory)), token_(std::move(token)) {}

  const TlsDirectory& directory() const { return directory_; }
  const std::string& token() const { return token_; }
  bool has_certificate() const { return directory_.HasCertificate(FileSystem::Real()).value_or(false); }
  // The first call starts reading the files.
  std::shared_ptr<Provider> provider() ABSL_LOCKS_EXCLUDED(mutex_) {
    KeepGrpc();
    MutexLock lock(&mutex_);
    if (provider_ == nullptr) {
      provider_ = has_certificate() ? std::make_shared<Provider>(directory_.key(), directory_.certificate(),
                                                                 directory_.authorities(), kReadAgainSeconds)
                                    : std::make_shared<Provider>(directory_.authorities(), kReadAgainSeconds);
    }
    return provider_;
  }

 private:
  const TlsDirectory directory_;
  const std::string token_;
  Mutex mutex_;
  std::shared_ptr<Provider> provider_ ABSL_GUARDED_BY(mutex_);
};

Credentials::Credentials(std::string tls_directory, std::string token)
    : state_(std::make_shared<State>(TlsDirectory(std::move(tls_directory)), std::move(token))) {}

const TlsDirectory& Credentials::directory() const { return state_->directory(); }

std::shared_ptr<grpc::ChannelCredentials> Credentials::ForClient(const std::string& target) const {
  if (directory().empty() || IsUnixTarget(target)) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(state_->provider());
  options.watch_root_certs();
  if (state_->has_certificate()) options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<ChiefVerifier>(directory(), HostOf(target)));
  options.set_check_call_host(false);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::experimental::TlsCredentials(options);
  if (state_->token().empty()) return credentials;
  return grpc::CompositeChannelCredentials(credentials, grpc::AccessTokenCredentials(state_->token()));
}

std::shared_ptr<grpc::ServerCredentials> Credentials::ForServer() const {
  if (directory().empty()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(state_->provider());
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace lockstep
