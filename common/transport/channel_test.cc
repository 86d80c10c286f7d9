#include "lockstep/common/transport/channel.h"

#include "grpc/grpc.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ChannelTest, GrpcOutlivesTheLastOne) {
  ASSERT_EQ(grpc_is_initialized(), 0);
  NewChannel("unix:/nowhere", Credentials()).reset();
  EXPECT_NE(grpc_is_initialized(), 0);
}

}  // namespace
}  // namespace lockstep
