#include "lockstep/common/transport/connection/channel.h"

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ChannelTest, GrpcOutlivesTheLastOne) {
  ASSERT_EQ(grpc_is_initialized(), 0);
  NewChannel("unix:/nowhere", Credentials()).reset();
  EXPECT_NE(grpc_is_initialized(), 0);
}

TEST(ChannelTest, EveryHostHasAScheme) {
  EXPECT_EQ(ChannelUri("chief:2222"), "dns:///chief:2222");
  EXPECT_EQ(ChannelUri("10.0.0.1:2222"), "ipv4:10.0.0.1:2222");
  EXPECT_EQ(ChannelUri("[::1]:2222"), "ipv6:%5B::1%5D:2222");
  EXPECT_EQ(ChannelUri("[fe80::1%eth0]:2222"), "ipv6:%5Bfe80::1%25eth0%5D:2222");
  EXPECT_EQ(ChannelUri("unix:/run/chief"), "unix:/run/chief");
  EXPECT_EQ(ChannelUri("unix-abstract:chief"), "unix-abstract:chief");
}

// The authority that the server sees is the target as given.
TEST(ChannelTest, SchemesAreKeptOutOfTheAuthority) {
  for (const char* host : {"127.0.0.1", "localhost", "[::1]"}) {
    grpc::ServerBuilder builder;
    grpc::AsyncGenericService service;
    int port = 0;
    builder.AddListeningPort(absl::StrCat(host, ":0"), grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&service);
    const auto queue = builder.AddCompletionQueue();
    const auto server = builder.BuildAndStart();
    if (server == nullptr) continue;  // no IPv6
    grpc::GenericServerContext call;
    grpc::GenericServerAsyncReaderWriter stream(&call);
    service.RequestCall(&call, &stream, queue.get(), queue.get(), nullptr);
    const std::string target = absl::StrCat(host, ":", port);
    const auto channel = NewChannel(target);
    grpc::ClientContext context;
    grpc::CompletionQueue replies;
    auto request = grpc::GenericStub(channel).PrepareUnaryCall(&context, "/a/b", grpc::ByteBuffer(), &replies);
    request->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    request->Finish(&reply, &status, nullptr);
    // Poll the client's queue so that it connects.
    void* tag = nullptr;
    bool ok = false;
    const auto soon = [] { return std::chrono::system_clock::now() + std::chrono::milliseconds(1); };
    while (queue->AsyncNext(&tag, &ok, soon()) == grpc::CompletionQueue::TIMEOUT) {
      replies.AsyncNext(&tag, &ok, soon());
    }
    EXPECT_EQ(call.host(), target);
    context.TryCancel();
    server->Shutdown(std::chrono::system_clock::now());
    queue->Shutdown();
    while (queue->Next(&tag, &ok)) {
    }
    replies.Shutdown();
    while (replies.Next(&tag, &ok)) {
    }
  }
}

}  // namespace
}  // namespace lockstep
