#include "lockstep/common/security/tls_diagnosis.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// The ALPN protocol that gRPC's servers require: "h2", preceded by its length.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

// A guard that keeps this thread's writes to a closed connection from ending a process that does not ignore SIGPIPE.
// OpenSSL cannot suppress the signal itself.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once = {};
    while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

// A connection that is abandoned at a deadline.
class BoundedSocket {
 public:
  explicit BoundedSocket(absl::Time deadline) : deadline_(deadline) {}
  ~BoundedSocket() {
    if (socket_ >= 0) close(socket_);
  }
  BoundedSocket(const BoundedSocket&) = delete;
  BoundedSocket& operator=(const BoundedSocket&) = delete;

  // Connects to the first address of the host that accepts a connection. Returns false if none does.
  bool Connect(const std::string& host, const std::string& port) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
    const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
    for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
      if (TryAddress(*info)) return true;
    }
    return false;
  }
  // Waits until the socket is ready to be read or written. Returns false after the deadline.
  bool Await(int16_t events) const {
    pollfd waiting = {socket_, events, 0};
    const auto left = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline_ - absl::Now()));
    return poll(&waiting, 1, static_cast<int>(left)) > 0;
  }
  int socket() const { return socket_; }

 private:
  bool TryAddress(const addrinfo& info) {
    if (socket_ >= 0) close(socket_);
    socket_ = ::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return false;
    if (connect(socket_, info.ai_addr, info.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !Await(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof(error);
    return getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  const absl::Time deadline_;
  int socket_ = -1;
};

struct HostPort {
  std::string host, port;
};

HostPort SplitTarget(const std::string& target) {
  const size_t colon = target.rfind(':');
  HostPort parts = {target.substr(0, colon), colon == std::string::npos ? "" : target.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[') parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

// Repeats a TLS operation until it completes or fails, or the deadline passes. Returns SSL_get_error's result, or
// SSL_ERROR_WANT_READ after the deadline.
template <typename Operation>
int Complete(SSL* tls, const BoundedSocket& socket, const Operation& operation) {
  while (true) {
    ERR_clear_error();
    const int result = operation();
    const int error = SSL_get_error(tls, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return error;
    if (!socket.Await(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)) return SSL_ERROR_WANT_READ;
  }
}

std::string LastReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

// Returns an error that explains OpenSSL's last error in human-readable form, or OK if that error may be temporary.
absl::Status Explain(const HostPort& target, const TlsDirectory& directory) {
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return absl::OkStatus();
  const int reason = ERR_GET_REASON(error);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG) {
    return absl::UnauthenticatedError(absl::StrCat("the chief at ", target.host, ":", target.port,
                                                   " does not speak TLS; give it --tls_dir too, or leave it out here"));
  }
  if (reason < SSL_AD_REASON_OFFSET) return absl::OkStatus();  // not an alert of the peer
  return absl::UnauthenticatedError(absl::StrCat("the chief at ", target.host, ":", target.port,
                                                 " refuses the certificate ", directory.certificate(), ": ",
                                                 LastReason()));
}

using Context = std::shared_ptr<SSL_CTX>;

absl::StatusOr<Context> NewContext(const TlsDirectory& directory, FileSystem* fs) {
  const Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2));
  // The peer's certificate is checked afterwards, so that the error can name the reason.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (directory.empty()) return context;
  ASSIGN_OR_RETURN(const bool has_certificate, directory.HasCertificate(fs));
  if (!has_certificate) return context;
  if (SSL_CTX_use_certificate_chain_file(context.get(), directory.certificate().c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), directory.key().c_str(), SSL_FILETYPE_PEM) != 1) {
    return absl::UnavailableError("the certificate is being replaced");
  }
  return context;
}

// Checks the certificate that the peer has presented.
absl::Status CheckPeer(SSL* tls, const HostPort& target, const TlsDirectory& directory, FileSystem* fs) {
  const std::shared_ptr<BIO> text(BIO_new(BIO_s_mem()), BIO_free);
  const STACK_OF(X509)* const shown = SSL_get_peer_cert_chain(tls);
  for (int i = 0; i < sk_X509_num(shown); ++i) PEM_write_bio_X509(text.get(), sk_X509_value(shown, i));
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  const auto certificate = Certificate::FromPem({data, static_cast<size_t>(size)});
  if (!certificate.ok()) return absl::OkStatus();
  const auto authorities = directory.ReadAuthorities(fs);
  if (!authorities.ok()) return absl::OkStatus();  // The file is being replaced.
  RETURN_IF_ERROR(authorities->Verify(*certificate, absl::Now()));
  absl::optional<PeerIdentity> own;
  if (const auto read = directory.ReadCertificate(fs); read.ok()) own = read->identity();
  return CheckIsChief(*certificate, target.host, own);
}

// Returns a text that says what is wrong with this end's certificate, as far as this end can tell.
std::string OwnFault(const TlsDirectory& directory, FileSystem* fs) {
  const auto own = directory.ReadCertificate(fs);
  const auto authorities = directory.ReadAuthorities(fs);
  if (!own.ok() || !authorities.ok()) return "";
  const absl::Status verified = authorities->Verify(*own, absl::Now());
  return verified.ok() ? ", which its ca.crt may not cover" : absl::StrCat(": ", verified.message());
}

absl::Status Handshake(const HostPort& target, const TlsDirectory& directory, FileSystem* fs,
                       const BoundedSocket& socket) {
  const absl::StatusOr<Context> context = NewContext(directory, fs);
  if (!context.ok()) return absl::OkStatus();
  const std::shared_ptr<SSL> tls(SSL_new(context->get()), SSL_free);
  SSL_set_fd(tls.get(), socket.socket());
  SSL_set_tlsext_host_name(tls.get(), target.host.c_str());
  const int connected = Complete(tls.get(), socket, [&] { return SSL_connect(tls.get()); });
  if (connected != SSL_ERROR_NONE) return directory.empty() ? absl::OkStatus() : Explain(target, directory);
  if (directory.empty()) {
    return absl::UnauthenticatedError(absl::StrCat("the chief at ", target.host, ":", target.port,
                                                   " speaks TLS; give --tls_dir, a folder with ca.crt, tls.crt and "
                                                   "tls.key for it"));
  }
  RETURN_IF_ERROR(CheckPeer(tls.get(), target, directory, fs));
  // In TLS 1.3 the peer checks this end's certificate after the handshake. It then sends its HTTP/2 settings or an
  // alert, or hangs up, as gRPC 1.51 does.
  char byte = 0;
  const int read = Complete(tls.get(), socket, [&] { return SSL_read(tls.get(), &byte, 1); });
  if (read == SSL_ERROR_NONE || read == SSL_ERROR_WANT_READ) return absl::OkStatus();
  RETURN_IF_ERROR(Explain(target, directory));
  return absl::UnauthenticatedError(absl::StrCat("the chief at ", target.host, ":", target.port,
                                                 " refuses the certificate ", directory.certificate(),
                                                 OwnFault(directory, fs)));
}

}  // namespace

absl::Status DiagnoseTls(const std::string& target, const TlsDirectory& directory, FileSystem* fs,
                         absl::Duration limit) {
  const NoPipeSignal no_signal;
  const HostPort parts = SplitTarget(target);
  const absl::Time deadline = absl::Now() + limit;
  absl::Status status;
  // Try twice, because a chief that is shutting down also hangs up, but is gone at the second try.
  for (int i = 0; i < 2; ++i) {
    BoundedSocket socket(deadline);
    if (!socket.Connect(parts.host, parts.port)) return absl::OkStatus();
    status = Handshake(parts, directory, fs, socket);
    ERR_clear_error();
    if (status.ok()) break;
  }
  return status;
}

}  // namespace lockstep
