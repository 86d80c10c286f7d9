#include "lockstep/common/cluster/master_address.h"

#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

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

TEST(MasterAddressTest, ReadsFiles) {
  for (const char* master : {"file:/mnt/run/chief", "file:///mnt/run/chief"}) {
    const auto address = ParseMasterAddress(master);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->file, "/mnt/run/chief");
    EXPECT_TRUE(address->targets.empty());
    EXPECT_FALSE(address->in_process());
  }
  EXPECT_EQ(ParseMasterAddress("file:runs/a, b:1")->file, "runs/a, b:1") << "a path may have anything";
}

TEST(MasterAddressTest, KnowsUnixSockets) {
  EXPECT_TRUE(IsUnixAddress("unix:/run/chief.sock"));
  EXPECT_TRUE(IsUnixAddress("unix-abstract:chief"));
  EXPECT_FALSE(IsUnixAddress("127.0.0.1:0"));
  EXPECT_FALSE(IsUnixAddress("unix-host:2222"));
}

TEST(MasterAddressTest, NamesTheError) {
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
      {"a:1,", "\"\" has no port"},
      {" ", "\"\" has no port"},
      {"grpc://a:+1", "has the port \"+1\""},
      {"grpc://a: 1", "has the port \" 1\""},
      {"grpc://a b:1", "has the host \"a b\", which is none"},
      {"grpc://user@chief:1", "has the host \"user@chief\""},
      {"grpc://chief/path:1", "has the host \"chief/path\""},
      {"grpc://[]:1", "has no host"},
      {"grpc://a\n:1", "has a byte that is no character"},
      {"file:", "\"file:\" names no path"},
      {"file://", "names no path"},
      {"a:1,file:/b", "\"file:/b\" must stand alone"},
      {"ftp:/a", "\"ftp:/a\" has the port \"/a\""},
      {"grpc://unix:2222", "has a host called \"unix\", which stands for a socket"},
      {"grpc://unix-abstract:2222", "has a host called \"unix-abstract\""},
  };
  for (const auto& [master, message] : cases) {
    const auto address = ParseMasterAddress(master);
    ASSERT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << master;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(message));
  }
}

// Any random string is either accepted or rejected, and accepted ones have no part that gRPC would misread.
TEST(MasterAddressTest, TakesOrRefusesAnyString) {
  const std::string pieces[] = {"grpc://",
                                "unix:",
                                "unix-abstract:",
                                "file:",
                                "a",
                                "chief.example",
                                ":",
                                ",",
                                "/",
                                "[",
                                "]",
                                "::1",
                                "2222",
                                "0",
                                " ",
                                "\n",
                                "-1",
                                "\xc3\xa9",
                                "%",
                                std::string("\0", 1)};
  std::mt19937_64 random(7);
  int taken = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string master;
    const uint64_t parts = 1 + random() % 6;
    for (uint64_t part = 0; part < parts; ++part) master += pieces[random() % std::size(pieces)];
    const auto address = ParseMasterAddress(master);
    if (!address.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(address.status()));
      EXPECT_THAT(std::string(address.status().message()), HasSubstr("an address is like"));
      continue;
    }
    ++taken;
    EXPECT_FALSE(address->in_process()) << master;
    for (const std::string& target : address->targets) {
      if (IsUnixAddress(target)) continue;
      const size_t colon = target.rfind(':');
      ASSERT_TRUE(colon != std::string::npos && colon > 0) << master;
      const int port = std::stoi(target.substr(colon + 1));
      EXPECT_TRUE(port >= 1 && port <= 65535) << master;
      EXPECT_EQ(target.find_first_of(" ,\n"), std::string::npos) << master;
    }
  }
  EXPECT_GT(taken, 1000);
}

TEST(AddressOfPeerTest, IsHostAndPort) {
  EXPECT_EQ(AddressOfPeer("ipv4:10.0.0.7:4321"), "10.0.0.7:4321");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B::1%5D:4321"), "[::1]:4321");
  EXPECT_EQ(AddressOfPeer("ipv6:%5Bfe80::1%25eth0%5D:4321"), "[fe80::1%eth0]:4321");
  EXPECT_EQ(AddressOfPeer("unix:"), "unix socket");
  EXPECT_EQ(AddressOfPeer("unix-abstract:name"), "unix socket");
}

}  // namespace
}  // namespace lockstep
