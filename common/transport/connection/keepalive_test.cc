#include "lockstep/common/transport/connection/keepalive.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Integers = std::map<std::string, int>;

Integers IntegersOf(const grpc::ChannelArguments& arguments) {
  Integers integers;
  const grpc_channel_args all = arguments.c_channel_args();
  for (size_t i = 0; i < all.num_args; ++i) {
    if (all.args[i].type == GRPC_ARG_INTEGER) integers[all.args[i].key] = all.args[i].value.integer;
  }
  return integers;
}

// An option that reads the options that were set before it.
class Reader : public grpc::ServerBuilderOption {
 public:
  explicit Reader(Integers* integers) : integers_(integers) {}
  void UpdateArguments(grpc::ChannelArguments* arguments) override { *integers_ = IntegersOf(*arguments); }
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

 private:
  Integers* const integers_;
};

Integers OfAClient() {
  grpc::ChannelArguments arguments;
  SetClientKeepalive(&arguments);
  return IntegersOf(arguments);
}

Integers OfAServer() {
  Integers integers;
  grpc::ServerBuilder builder;
  SetServerKeepalive(&builder);
  builder.SetOption(std::make_unique<Reader>(&integers));
  builder.BuildAndStart();  // Applies the options, although there is no server to create.
  return integers;
}

TEST(KeepaliveTest, BothEndsGiveUpASilentPeer) {
  EXPECT_EQ(OfAClient()[GRPC_ARG_KEEPALIVE_TIMEOUT_MS], 30000);
  EXPECT_EQ(OfAServer()[GRPC_ARG_KEEPALIVE_TIMEOUT_MS], 20000);
  for (Integers arguments : {OfAClient(), OfAServer()}) {
    EXPECT_EQ(arguments[GRPC_ARG_KEEPALIVE_TIME_MS], 5000);
    EXPECT_EQ(arguments.at(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA), 0) << "as many as it takes";
  }
  EXPECT_EQ(OfAServer()[GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS], 1);
}

// gRPC writes up to 1 MiB before a ping or before its answer to a ping, in addition to the kernel's buffer.
TEST(KeepaliveTest, AnswersMayWaitAt800KilobitPerSecond) {
  constexpr int kMilliseconds = (1 << 20) / 100;  // 100 bytes a millisecond
  EXPECT_GT(OfAClient()[GRPC_ARG_KEEPALIVE_TIMEOUT_MS], 2 * kMilliseconds);
  EXPECT_GT(OfAServer()[GRPC_ARG_KEEPALIVE_TIMEOUT_MS], 3 * kMilliseconds / 2);
}

TEST(KeepaliveTest, AClientPingsLessThanAServerAllows) {
  EXPECT_LT(OfAServer()[GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS],
            OfAClient()[GRPC_ARG_KEEPALIVE_TIME_MS] / 2);
}

}  // namespace
}  // namespace lockstep
