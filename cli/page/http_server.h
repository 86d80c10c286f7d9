#ifndef LOCKSTEP_CLI_PAGE_HTTP_SERVER_H_
#define LOCKSTEP_CLI_PAGE_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

struct MHD_Daemon;

namespace lockstep {

// The parts of a GET request that handlers see.
struct HttpRequest {
  std::string path;  // without the query
  // Returns an argument of the query, or nullopt if it is absent.
  std::function<absl::optional<std::string>(const char* name)> argument;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  // Shared by all clients to which it is being sent.
  std::shared_ptr<const std::string> body;
};

// Returns true if the Host header names an IP address, "localhost", or one of `names`. A browser that reached this
// server through a foreign name (DNS rebinding) cannot have sent such a header.
bool IsOwnHost(absl::string_view host, const std::set<std::string>& names);

// A small HTTP/1.1 server over libmicrohttpd with one thread. Accepts only GET and HEAD without bodies. Its memory is
// bounded whatever clients send: 512 connections with 16 KiB each, which end after ten seconds without progress, and 8
// MiB of bodies that clients have not taken yet, or one body. Beyond that, a request gets 503. Serves from the
// constructor to the destructor. The handler is called on the server's thread and must not block.
class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  struct Options {
    // "HOST:PORT" with an IP address or "localhost"; port 0 takes any free port.
    std::string address = "127.0.0.1:0";
    // Names besides IP addresses and "localhost" by which requests may refer to this host.
    std::set<std::string> names;
    // If not empty, all paths except "/" require "Authorization: Bearer TOKEN".
    std::string token;
    Handler handler;
  };

  // Errors: InvalidArgument for a malformed address; Unavailable if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  ~HttpServer();

  // Returns, for example, "http://127.0.0.1:9464".
  const std::string& url() const { return url_; }
  int port() const { return port_; }

 private:
  friend struct HttpCallbacks;
  explicit HttpServer(Options options) : options_(std::move(options)) {}
  absl::Status Listen();

  // Bodies that are being sent, each counted once.
  struct Unsent {
    std::map<const std::string*, int> replies;  // by body
    size_t bytes = 0;
  };

  const Options options_;
  MHD_Daemon* daemon_ = nullptr;
  Unsent unsent_;  // used by the server's thread, and afterwards by the destructor
  std::string url_;
  int port_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_HTTP_SERVER_H_
