#include "common/cluster/master_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> TargetsOf(absl::string_view master) {
  const auto address = ParseMasterAddress(master);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.ok() ? address->targets : std::vector<std::string>{};
}

TEST(MasterAddressTest, ReadsHostsPathsAndLists) {
  EXPECT_THAT(TargetsOf("grpc://chief:2222"), ElementsAre("chief:2222"));
  EXPECT_THAT(TargetsOf("127.0.0.1:1"), ElementsAre("127.0.0.1:1"));
  EXPECT_THAT(TargetsOf("grpc://[::1]:65535/"), ElementsAre("[::1]:65535"));
  EXPECT_THAT(TargetsOf("unix:/run/chief.sock"), ElementsAre("unix:/run/chief.sock"));
  EXPECT_THAT(TargetsOf("unix:///run/chief.sock"), ElementsAre("unix:/run/chief.sock"));
  EXPECT_THAT(TargetsOf("unix-abstract:chief"), ElementsAre("unix-abstract:chief"));
  EXPECT_THAT(TargetsOf("grpc://a:1, b:2,unix:c"), ElementsAre("a:1", "b:2", "unix:c"));
}

TEST(MasterAddressTest, TakesTheEmptyAddressForThisProcess) {
  const auto address = ParseMasterAddress("");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->in_process());
  EXPECT_FALSE(ParseMasterAddress("grpc://chief:2222")->in_process());
}

TEST(MasterAddressTest, KnowsUnixSockets) {
  EXPECT_TRUE(IsUnixAddress("unix:/run/chief.sock"));
  EXPECT_TRUE(IsUnixAddress("unix-abstract:chief"));
  EXPECT_FALSE(IsUnixAddress("127.0.0.1:0"));
  EXPECT_FALSE(IsUnixAddress("unix-host:2222"));
}

TEST(MasterAddressTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"grpc://chief", "\"grpc://chief\" has no port"},
      {"grpc://[::1]", "has no port"},
      {"grpc://:2222", "has no host"},
      {"grpc://::1:2222", "IPv6 host that is not in brackets"},
      {"grpc://chief:http", "has the port \"http\", not one of 1 to 65535"},
      {"grpc://chief:65536", "has the port \"65536\""},
      {"grpc://chief:0", "has the port \"0\""},
      {"http://chief:80", "a scheme that is neither grpc:// nor unix:"},
      {"unix:", "names no path"},
      {"unix-abstract:", "names no socket"},
      {"a:1,,b:2", "\"\" has no port"},
  };
  for (const auto& [master, message] : cases) {
    const auto address = ParseMasterAddress(master);
    ASSERT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << master;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace lockstep
