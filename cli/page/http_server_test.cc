#include "lockstep/cli/page/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process_usage.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// A client that sends the given bytes.
class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() {
    if (socket_ >= 0) close(socket_);
  }
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}

  bool connected() const { return connected_; }
  // Returns false if the server has closed the connection.
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  // Returns the next bytes, or fewer if the server closes the connection before.
  std::string Read(size_t bytes) {
    std::string all(bytes, '\0');
    const ssize_t n = recv(socket_, all.data(), bytes, MSG_WAITALL);
    all.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    return all;
  }
  // Returns everything that the server sends before it closes the connection.
  std::string ReadAll() {
    std::string all;
    char buffer[4096];
    while (true) {
      const ssize_t n = recv(socket_, buffer, sizeof(buffer), 0);
      if (n <= 0) return all;
      all.append(buffer, static_cast<size_t>(n));
    }
  }

 private:
  int socket_;
  bool connected_ = false;
};

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() { Restart({}); }

  void Restart(HttpServer::Options options) {
    server_.reset();
    options.handler = [this](const HttpRequest& request) {
      ++requests_;
      HttpReply reply;
      reply.body = shared_;
      if (request.path == "/shared") return reply;
      reply.body = std::make_shared<const std::string>(
          absl::StrCat(request.path, " a=", request.argument("a").value_or("none"), std::string(padding_, '.')));
      return reply;
    };
    auto server = HttpServer::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& request) {
    Client client(server_->port());
    client.Send(request);
    return client.ReadAll();
  }
  std::string Get(const std::string& path, const std::string& host = "localhost", const std::string& more = "") {
    return Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\nConnection: close\r\n", more, "\r\n"));
  }

  int requests_ = 0;  // changed by the server's thread while the test waits for it
  size_t padding_ = 0;
  const std::shared_ptr<const std::string> shared_ = std::make_shared<const std::string>(4 << 20, '.');
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAGet) {
  const std::string reply = Get("/path?a=b%20c");
  EXPECT_TRUE(absl::StartsWith(reply, "HTTP/1.1 200")) << reply;
  EXPECT_TRUE(absl::EndsWith(reply, "\r\n\r\n/path a=b c")) << reply;
  EXPECT_TRUE(absl::StrContains(reply, "Content-Security-Policy: default-src 'none'")) << reply;
  EXPECT_EQ(server_->url(), absl::StrCat("http://127.0.0.1:", server_->port()));
}

TEST_F(HttpServerTest, SendsALargeBody) {
  padding_ = 1 << 20;
  EXPECT_TRUE(absl::EndsWith(Get("/"), "....")) << "also one that fits into no buffer";
}

TEST_F(HttpServerTest, TakesNothingButGetAndHead) {
  const std::string head = Ask("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(head, "HTTP/1.1 200")) << head;
  EXPECT_TRUE(absl::EndsWith(head, "\r\n\r\n")) << head;
  const int before = requests_;
  for (const std::string& method : std::vector<std::string>{"PUT", "DELETE", "OPTIONS", "TRACE"}) {
    const std::string reply = Ask(method + " / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(absl::StartsWith(reply, "HTTP/1.1 405")) << method << ": " << reply;
  }
  const std::string post = Ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123456789");
  EXPECT_FALSE(absl::StartsWith(post, "HTTP/1.1 200")) << post;
  EXPECT_EQ(requests_, before);
}

TEST_F(HttpServerTest, RefusesAForeignHost) {
  const std::string reply = Get("/", "attacker.example");
  EXPECT_TRUE(absl::StartsWith(reply, "HTTP/1.1 403")) << reply;
  EXPECT_TRUE(absl::StrContains(reply, "--host=NAME")) << reply;
  EXPECT_TRUE(absl::StartsWith(Get("/", "127.0.0.1:9464"), "HTTP/1.1 200"));
  EXPECT_TRUE(absl::StartsWith(Get("/", "[::1]:9464"), "HTTP/1.1 200"));
  HttpServer::Options options;
  options.names = {"train.example"};
  Restart(options);
  EXPECT_TRUE(absl::StartsWith(Get("/", "Train.Example:80"), "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AsksForItsToken) {
  HttpServer::Options options;
  options.token = "0123456789abcdef";
  Restart(options);
  EXPECT_TRUE(absl::StartsWith(Get("/"), "HTTP/1.1 200")) << "the page itself has no data";
  EXPECT_TRUE(absl::StartsWith(Get("/state.json"), "HTTP/1.1 401"));
  EXPECT_TRUE(
      absl::StartsWith(Get("/state.json", "localhost", "Authorization: Bearer 0123456789abcdeg\r\n"), "HTTP/1.1 401"));
  EXPECT_TRUE(absl::StartsWith(Get("/state.json", "localhost", "Authorization: Bearer \r\n"), "HTTP/1.1 401"));
  EXPECT_TRUE(
      absl::StartsWith(Get("/state.json", "localhost", "Authorization: Bearer 0123456789abcdef\r\n"), "HTTP/1.1 200"));
}

TEST_F(HttpServerTest, EndlessHeadersTakeNoMemory) {
  const int64_t before = ReadProcessUsage().resident_bytes;
  for (const std::string& chunk : std::vector<std::string>{std::string(64 << 10, 'a'), "X-Header: value\r\n"}) {
    Client client(server_->port());
    ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nX: "));
    int64_t sent = 0;
    while (sent < 64 << 20 && client.Send(chunk)) sent += static_cast<int64_t>(chunk.size());
    EXPECT_LT(sent, 64 << 20) << "the connection is closed early";
  }
  EXPECT_LT(ReadProcessUsage().resident_bytes - before, 8 << 20);
}

TEST_F(HttpServerTest, AnswersDuring300HalfRequests) {
  const int64_t before = ReadProcessUsage().resident_bytes;
  std::vector<Client> halves;
  for (int i = 0; i < 300; ++i) {
    halves.emplace_back(server_->port());
    ASSERT_TRUE(halves.back().connected());
    ASSERT_TRUE(halves.back().Send("GET /met"));
  }
  EXPECT_TRUE(absl::StartsWith(Get("/"), "HTTP/1.1 200"));
  EXPECT_LT(ReadProcessUsage().resident_bytes - before, 8 << 20);
}

// Half requests, requests that arrive byte by byte, an endless header, and pages that load and are not read.
TEST_F(HttpServerTest, AnswersAmidHostileClients) {
  const int64_t before = ReadProcessUsage().resident_bytes;
  std::vector<Client> clients;
  for (int i = 0; i < 300; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().Send("GET /met"));
  }
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().Send("GET /shared HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  Client endless(server_->port());
  endless.Send(absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(1 << 20, 'a')));
  const std::string slow = "rics HTTP/1.1\r\nHost: localhost\r\n";
  for (const char byte : slow) {
    for (size_t i = 300; i-- > 250;) ASSERT_TRUE(clients[i].Send(std::string(1, byte)));
    const absl::Time began = absl::Now();
    EXPECT_TRUE(absl::StartsWith(Get("/"), "HTTP/1.1 200"));
    EXPECT_LT(absl::Now() - began, absl::Seconds(1));
  }
  EXPECT_LT(ReadProcessUsage().resident_bytes - before, 16 << 20);
}

TEST_F(HttpServerTest, BoundsBodiesThatAreNotRead) {
  padding_ = 7 << 20;  // more than a socket's buffers hold
  std::vector<Client> clients;
  std::vector<std::string> replies;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    replies.push_back(clients.back().Read(12));
  }
  EXPECT_THAT(replies, ElementsAre("HTTP/1.1 200", "HTTP/1.1 503"));
  clients.clear();
  while (!absl::StartsWith(Get("/"), "HTTP/1.1 200")) {  // the server notices soon that they are gone
  }
}

TEST_F(HttpServerTest, NamesTheErrorInAnAddress) {
  HttpServer::Options options;
  options.address = "127.0.0.1";
  EXPECT_EQ(HttpServer::Start(options).status().message(),
            "\"127.0.0.1\" is not HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:9464");
  options.address = "example.com:80";
  EXPECT_EQ(HttpServer::Start(options).status().message(),
            "\"example.com:80\": example.com is neither an IP address nor localhost");
  options.address = absl::StrCat("127.0.0.1:", server_->port());
  const absl::Status in_use = HttpServer::Start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(in_use)) << in_use;
}

}  // namespace
}  // namespace lockstep
