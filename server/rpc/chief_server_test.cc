#include "lockstep/server/rpc/chief_server.h"

#include <utility>

#include "google/protobuf/text_format.h"
#include "grpc/grpc.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {
namespace {

TEST(ChiefServerTest, GrpcOutlivesTheLastOne) {
  ASSERT_EQ(grpc_is_initialized(), 0);
  Chief::Options options;
  options.fs = FileSystem::Real();
  options.clock = Clock::Real();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 1 }", &options.config));
  ApplyDefaults(&options.config);
  const auto chief = Chief::Create(std::move(options));
  ASSERT_TRUE(chief.ok()) << chief.status();
  auto server = ChiefServer::Start(ChiefServer::Options(), chief->get());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE((*server)->port(), 0);
  server->reset();
  EXPECT_NE(grpc_is_initialized(), 0);
}

}  // namespace
}  // namespace lockstep
