#include "lockstep/server/rpc/admission/call_acceptor.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/server/rpc/testing/loopback_server.h"

namespace lockstep {
namespace {

// A call that ends as soon as its method is known, with a status that names the method.
class NamingCall final : public CompletionTag {
 public:
  static void Start(std::unique_ptr<IncomingCall> incoming) {
    auto* const call = new NamingCall(std::move(incoming));
    call->call_->stream.Finish(grpc::Status(grpc::StatusCode::OUT_OF_RANGE, call->call_->context.method()), call);
  }
  void OnEvent(bool) override { delete this; }

 private:
  explicit NamingCall(std::unique_ptr<IncomingCall> call) : call_(std::move(call)) {}

  const std::unique_ptr<IncomingCall> call_;
};

TEST(CallAcceptorTest, HandsEachCallToTheHandlerOfItsMethod) {
  LoopbackServer server({{"/a/A", NamingCall::Start}, {"/a/B", NamingCall::Start}});
  for (const std::string method : {"/a/A", "/a/B", "/a/A"}) {
    std::string reply;
    const grpc::Status status = server.Call(method, "", &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
    EXPECT_EQ(status.error_message(), method);
  }
}

TEST(CallAcceptorTest, AnUnservedMethodIsUnimplemented) {
  LoopbackServer server({{"/a/A", NamingCall::Start}});
  std::string reply;
  const grpc::Status status = server.Call("/a/C", "request", &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "there is no method /a/C");
  EXPECT_EQ(server.Call("/a/A", "", &reply).error_code(), grpc::StatusCode::OUT_OF_RANGE) << "the next call is served";
}

TEST(CallAcceptorTest, EndsWithItsServerWithoutCalls) { LoopbackServer server({}); }

}  // namespace
}  // namespace lockstep
