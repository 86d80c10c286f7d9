// Tests Step streams that a chief ends after messages that the worker has not read. gRPC returns the status of a call
// only after all messages before it have been read.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "lockstep/common/transport/grpc_step_stream.h"
#include "lockstep/tests/testing/http2_peer.h"

namespace lockstep {
namespace {

// Serves one connection. Answers each call with three replies and its end, all at once.
class Server {
 public:
  Server() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, raw, sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(listener_, raw, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  // Blocks until the client hangs up.
  ~Server() {
    thread_.join();
    close(listener_);
  }

  const std::string& address() const { return address_; }

 private:
  void Serve() {
    Http2Peer peer(accept(listener_, nullptr, nullptr));
    peer.Send(Http2Peer::Encode(Http2Peer::kSettings, 0, 0, ""));
    while (const auto frame = peer.Read()) {
      constexpr uint8_t kAck = 1;
      if (frame->type == Http2Peer::kSettings && (frame->flags & kAck) == 0) {
        peer.Send(Http2Peer::Encode(Http2Peer::kSettings, kAck, 0, ""));
      }
      if (frame->type != Http2Peer::kHeaders) continue;
      // Sends everything at once, so that the client receives it together.
      std::string answer = Http2Peer::Encode(
          Http2Peer::kHeaders, Http2Peer::kEndHeaders, frame->stream,
          Http2Peer::Header(":status", "200") + Http2Peer::Header("content-type", "application/grpc"));
      const std::string empty_message(5, '\0');
      for (int i = 0; i < 3; ++i) answer += Http2Peer::Encode(Http2Peer::kData, 0, frame->stream, empty_message);
      answer += Http2Peer::Encode(Http2Peer::kHeaders, Http2Peer::kEndHeaders | Http2Peer::kEndStream, frame->stream,
                                  Http2Peer::Header("grpc-status", "14"));
      const std::string no_error(4, '\0');
      answer += Http2Peer::Encode(Http2Peer::kResetStream, 0, frame->stream, no_error);
      peer.Send(answer);
    }
  }

  const int listener_;
  std::string address_;
  std::thread thread_;
};

// Waits for one reply.
class OneReply : public StepStream::Receiver {
 public:
  absl::StatusOr<bool> OnReply(const StepReplyFrame&) override { return false; }
};

TEST(UnreadRepliesTest, DoNotKeepAWorkerWhoseStreamHasEnded) {
  Server server;
  GrpcStepStream stream(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()),
                        /*leave_limit=*/absl::InfiniteDuration());
  OneReply receiver;
  ASSERT_EQ(stream.Receive(&receiver).value(), true);
  StepFrame leave;
  leave.leave = true;
  EXPECT_EQ(stream.Send(leave), absl::OkStatus());
  stream.Drain();
  const absl::Status status = stream.Close();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace lockstep
