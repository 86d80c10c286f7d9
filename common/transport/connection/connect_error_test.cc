#include "lockstep/common/transport/connection/connect_error.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Explains an error message from gRPC 1.51.
std::string Explained(const std::string& text) {
  return std::string(ExplainConnectError("chief.test:2222", absl::UnavailableError(text)).message());
}

TEST(ConnectErrorTest, NamesAHostThatDoesNotExist) {
  EXPECT_EQ(Explained("DNS resolution failed for chief.test:2222: C-ares status is not ARES_SUCCESS qtype=A "
                      "name=chief.test is_balancer=0: Domain name not found"),
            "the host name \"chief.test\" cannot be resolved: Domain name not found");
}

TEST(ConnectErrorTest, NamesARefusedConnection) {
  EXPECT_EQ(Explained("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to "
                      "remote host: Connection refused"),
            "connection refused: no process listens there");
}

TEST(ConnectErrorTest, NamesAPortOfAnotherProtocol) {
  EXPECT_EQ(Explained("failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed"),
            "the port does not speak HTTP/2 in plain text; it may speak TLS (Socket closed)");
}

TEST(ConnectErrorTest, NamesAServerOfSomethingElse) {
  EXPECT_EQ(Explained("failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Failed parsing "
                      "HTTP/2"),
            "the port does not speak HTTP/2 in plain text; it may speak TLS (Failed parsing HTTP/2)");
  EXPECT_EQ(ExplainConnectError("web.test:80", absl::UnimplementedError("Received http2 header with status: 404")),
            absl::UnimplementedError("web.test:80 is no Lockstep chief, or one of another release: Received http2 "
                                     "header with status: 404"));
}

TEST(ConnectErrorTest, KeepsAnotherReason) {
  EXPECT_EQ(Explained("failed to connect to all addresses; last error: UNKNOWN: No route to host"),
            "no connection: UNKNOWN: No route to host");
  EXPECT_EQ(Explained("the chief is stopping"), "the chief is stopping");
  EXPECT_EQ(ExplainConnectError("a:1", absl::AbortedError("Connection refused")),
            absl::AbortedError("Connection refused"));
}

}  // namespace
}  // namespace lockstep
