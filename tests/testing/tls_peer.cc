#include "lockstep/tests/testing/tls_peer.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "lockstep/tests/testing/http2_peer.h"
#include "lockstep/tests/testing/loopback_connection.h"

namespace lockstep {
namespace {

constexpr uint8_t kContinuation = 9;

// Returns a literal HPACK header.
std::string Header(const std::string& name, const std::string& value) {
  const auto text = [](const std::string& each) {
    if (each.size() < 127) return std::string(1, static_cast<char>(each.size())) + each;
    std::string length = "\x7f";
    size_t rest = each.size() - 127;
    for (; rest >= 128; rest >>= 7) length += static_cast<char>(rest % 128 + 128);
    return length + static_cast<char>(rest) + each;
  };
  return std::string(1, '\0') + text(name) + text(value);
}

std::string RequestHeaders(const std::string& method) {
  return Header(":method", "POST") + Header(":scheme", "https") + Header(":path", method) +
         Header(":authority", "chief") + Header("te", "trailers") + Header("content-type", "application/grpc");
}

}  // namespace

TlsPeer::TlsPeer(const std::string& address, const std::string& kit)
    : fd_(ConnectToLoopback(address)), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to a connection that the server has closed
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context_.get(), kHttp2, sizeof(kHttp2));
  if (!kit.empty()) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), (kit + "/tls.crt").c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), (kit + "/tls.key").c_str(), SSL_FILETYPE_PEM), 1);
  }
  tls_ = {SSL_new(context_.get()), SSL_free};
  SSL_set_fd(tls_.get(), fd_);
  EXPECT_EQ(SSL_connect(tls_.get()), 1);
  Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  Send(Http2Peer::Encode(Http2Peer::kSettings, 0, 0, ""));
}

TlsPeer::~TlsPeer() { close(fd_); }

void TlsPeer::Send(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const int sent = SSL_write(tls_.get(), bytes.data() + at, static_cast<int>(bytes.size() - at));
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

void TlsPeer::Begin(uint32_t stream, const std::string& method) {
  Send(Http2Peer::Encode(Http2Peer::kHeaders, Http2Peer::kEndHeaders | Http2Peer::kEndStream, stream,
                         RequestHeaders(method)));
}

void TlsPeer::SendEndlessHeaders(int frames, int bytes) {
  std::string flood =
      Http2Peer::Encode(Http2Peer::kHeaders, 0, 1, RequestHeaders("/lockstep.v1.ChiefService/GetStatus"));
  const std::string more = Header("name", std::string(static_cast<size_t>(bytes), 'a'));
  for (int i = 0; i < frames; ++i) flood += Http2Peer::Encode(kContinuation, 0, 1, more);
  Send(flood);
}

bool TlsPeer::ReadUntil(const std::string& text) {
  std::string received;
  char buffer[4096];
  while (true) {
    const int count = SSL_read(tls_.get(), buffer, sizeof(buffer));
    if (count <= 0) return false;
    received.append(buffer, static_cast<size_t>(count));
    if (!text.empty() && absl::StrContains(received, text)) return true;
  }
}

}  // namespace lockstep
