#include "lockstep/cli/page/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr unsigned kMaxConnections = 512;
constexpr size_t kConnectionBytes = 16 << 10;
constexpr unsigned kTimeoutSeconds = 10;
// A body may have a megabyte, and each client may request a different one and read it slowly.
constexpr size_t kMaxUnsentBytes = 8 << 20;

struct Address {
  std::string host;  // without brackets
  int port = 0;
};

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  Address address;
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:9464"));
  }
  address.host = text.substr(0, colon);
  if (absl::StartsWith(address.host, "[") && absl::EndsWith(address.host, "]")) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

bool IsIp(const std::string& host) {
  in6_addr bytes;
  return inet_pton(AF_INET, host.c_str(), &bytes) == 1 || inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

// Fills in the socket's address and returns its length in bytes, or 0 if the host is not an IP address.
socklen_t FillAddress(const Address& address, sockaddr_storage* storage) {
  std::memset(storage, 0, sizeof(*storage));
  auto* const v4 = reinterpret_cast<sockaddr_in*>(storage);
  if (inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(address.port));
    return sizeof(sockaddr_in);
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(storage);
  if (inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) != 1) return 0;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(address.port));
  return sizeof(sockaddr_in6);
}

HttpReply Refusal(int status, const std::string& text) {
  HttpReply reply;
  reply.status = status;
  reply.body = std::make_shared<const std::string>(text + "\n");
  return reply;
}

// Takes the same time for a wrong token as for the right one.
bool SameToken(absl::string_view given, const std::string& token) {
  unsigned difference = given.size() == token.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i % token.size()]);
  }
  return difference == 0;
}

std::string Header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string() : value;
}

void AddHeaders(const HttpReply& reply, MHD_Response* response) {
  const std::pair<const char*, const char*> headers[] = {
      {"Content-Type", reply.content_type.c_str()},
      {"Cache-Control", "no-store"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      {"Content-Security-Policy",
       "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}};
  for (const auto& header : headers) MHD_add_response_header(response, header.first, header.second);
  if (reply.status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
  if (reply.status == 405) MHD_add_response_header(response, "Allow", "GET, HEAD");
}

}  // namespace

bool IsOwnHost(absl::string_view host, const std::set<std::string>& names) {
  std::string name = absl::AsciiStrToLower(host);
  if (absl::StartsWith(name, "[")) {
    const size_t end = name.find(']');
    return end != std::string::npos && IsIp(name.substr(1, end - 1));
  }
  name = name.substr(0, name.find(':'));
  return name == "localhost" || IsIp(name) || names.count(name) > 0;
}

// libmicrohttpd's callbacks.
struct HttpCallbacks {
  // The body that a response sends. Freed together with the response.
  struct Body {
    Body(std::shared_ptr<const std::string> body, HttpServer::Unsent* all) : text(std::move(body)), unsent(*all) {
      if (++unsent.replies[text.get()] == 1) unsent.bytes += text->size();
    }
    ~Body() {
      const auto replies = unsent.replies.find(text.get());
      if (--replies->second > 0) return;
      unsent.replies.erase(replies);
      unsent.bytes -= text->size();
    }

    const std::shared_ptr<const std::string> text;
    HttpServer::Unsent& unsent;
  };

  static ssize_t ReadBody(void* cls, uint64_t offset, char* buffer, size_t most) {
    const std::string& text = *static_cast<Body*>(cls)->text;
    if (offset >= text.size()) return MHD_CONTENT_READER_END_OF_STREAM;
    const size_t bytes = std::min(most, text.size() - static_cast<size_t>(offset));
    std::memcpy(buffer, text.data() + offset, bytes);
    return static_cast<ssize_t>(bytes);
  }

  static void FreeBody(void* cls) { delete static_cast<Body*>(cls); }

  static bool HasRoom(const HttpServer::Unsent& unsent, const HttpReply& reply) {
    return unsent.bytes == 0 || unsent.replies.count(reply.body.get()) > 0 ||
           unsent.bytes + reply.body->size() <= kMaxUnsentBytes;
  }

  static MHD_Result Send(HttpReply reply, MHD_Connection* connection, HttpServer::Unsent* unsent) {
    constexpr size_t kBlockBytes = 4096;
    if (!HasRoom(*unsent, reply)) reply = Refusal(503, "too many replies are being read; try again later");
    auto* const body = new Body(reply.body, unsent);
    MHD_Response* const response =
        MHD_create_response_from_callback(body->text->size(), kBlockBytes, ReadBody, body, FreeBody);
    if (response == nullptr) {
      delete body;
      return MHD_NO;
    }
    AddHeaders(reply, response);
    const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  static HttpReply Answer(const HttpServer& server, MHD_Connection* connection, const char* path, const char* method) {
    if (std::strcmp(method, "GET") != 0 && std::strcmp(method, "HEAD") != 0) {
      return Refusal(405, "only GET and HEAD");
    }
    if (!IsOwnHost(Header(connection, "Host"), server.options_.names)) {
      return Refusal(403, "the Host header names another host; --host=NAME allows a name");
    }
    const std::string& token = server.options_.token;
    if (!token.empty() && std::strcmp(path, "/") != 0) {
      const std::string given = Header(connection, "Authorization");
      absl::string_view bearer = given;
      if (!absl::ConsumePrefix(&bearer, "Bearer ") || !SameToken(bearer, token)) {
        return Refusal(401, "a token is needed: Authorization: Bearer TOKEN");
      }
    }
    HttpRequest request;
    request.path = path;
    request.argument = [connection](const char* name) -> absl::optional<std::string> {
      const char* const value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
      return value == nullptr ? absl::optional<std::string>() : std::string(value);
    };
    HttpReply reply = server.options_.handler(request);
    if (reply.body == nullptr) reply.body = std::make_shared<const std::string>();
    return reply;
  }

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection, const char* path, const char* method,
                              const char* /*version*/, const char* /*data*/, size_t* size, void** state) {
    // The first call comes with only the headers. If a body follows, replying in this call ends the connection, so the
    // body is never read.
    if (*size != 0) return MHD_NO;
    static char seen;
    const bool has_body =
        !Header(connection, "Content-Length").empty() || !Header(connection, "Transfer-Encoding").empty();
    if (*state == nullptr && !has_body) {
      *state = &seen;
      return MHD_YES;
    }
    auto* const server = static_cast<HttpServer*>(cls);
    return Send(Answer(*server, connection, path, method), connection, &server->unsent_);
  }
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::Status HttpServer::Listen() {
  ASSIGN_OR_RETURN(const Address address, ParseAddress(options_.address));
  sockaddr_storage storage;
  const socklen_t length = FillAddress(address, &storage);
  if (length == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", options_.address, "\": ", address.host, " is neither an IP address nor localhost"));
  }
  const int socket_fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_fd < 0) return absl::UnavailableError(absl::StrCat("no socket: ", std::strerror(errno)));
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket_fd, reinterpret_cast<sockaddr*>(&storage), length) != 0 || listen(socket_fd, 128) != 0) {
    const std::string why = std::strerror(errno);
    close(socket_fd);
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.address, ": ", why));
  }
  sockaddr_storage bound;
  socklen_t bound_length = sizeof(bound);
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&bound), &bound_length);
  // The port is at the same offset in both address types.
  port_ = ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  const bool v6 = storage.ss_family == AF_INET6;
  url_ = absl::StrCat("http://", v6 ? "[" : "", address.host, v6 ? "]" : "", ":", port_);
  daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &HttpCallbacks::OnRequest, this,
                             MHD_OPTION_LISTEN_SOCKET, socket_fd, MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,
                             MHD_OPTION_CONNECTION_TIMEOUT, kTimeoutSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                             kConnectionBytes, MHD_OPTION_END);
  if (daemon_ != nullptr) return absl::OkStatus();
  close(socket_fd);
  return absl::UnavailableError(absl::StrCat("cannot serve on ", options_.address));
}

HttpServer::~HttpServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

}  // namespace lockstep
