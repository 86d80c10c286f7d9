#include "lockstep/server/rpc/admission/listen_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddressTest, IsReadAsGrpcSpellsIt) {
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {"127.0.0.1:0", {"127.0.0.1", "0"}},      {"ipv4:10.0.0.5:2222", {"10.0.0.5", "2222"}},
      {"dns:///chief:2222", {"chief", "2222"}}, {"[::1]:2222", {"::1", "2222"}},
      {":2222", {"0.0.0.0", "2222"}},
  };
  for (const auto& [address, parts] : cases) {
    const auto parsed = ParseListenAddress(address);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, parts.first) << address;
    EXPECT_EQ(parsed->port, parts.second) << address;
  }
}

TEST(ListenAddressTest, NamesAddressesThatNeverBind) {
  const std::pair<std::string, std::string> cases[] = {
      {"127.0.0.1", "it names no port"},
      {"127.0.0.1:99999", "the port is 99999, must be 0 to 65535"},
      {"127.0.0.1:-1", "the port is -1"},
      {"127.0.0.1:http", "the port is http"},
      {"127.0.0.1:", "the port is ,"},
      {"192.0.2.1:2222", "192.0.2.1 is no address of this machine"},
      {"127.0.0.1:0,192.0.2.1:1", "\"192.0.2.1:1\""},
      {"unix:", "a name has 1 to"},
      {absl::StrCat("unix:/", std::string(200, 'x')), "a name has 1 to 107 bytes"},
      {"unix:/no/such/folder/socket", "there is no directory /no/such/folder"},
  };
  for (const auto& [addresses, why] : cases) {
    const absl::Status status = CheckListenAddresses(addresses);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << addresses << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST(ListenAddressTest, AcceptsAddressesThatMayBindLater) {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<const sockaddr*>(&place), sizeof(place)), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  socklen_t length = sizeof(place);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&place), &length), 0);
  for (const std::string& addresses :
       {std::string("127.0.0.1:0"), std::string("0.0.0.0:2222"), std::string("localhost:2222,unix-abstract:lockstep"),
        std::string("unix:/tmp/lockstep.sock"), absl::StrCat("127.0.0.1:", ntohs(place.sin_port))}) {
    EXPECT_TRUE(CheckListenAddresses(addresses).ok()) << CheckListenAddresses(addresses);
  }
  close(taken);
}

}  // namespace
}  // namespace lockstep
