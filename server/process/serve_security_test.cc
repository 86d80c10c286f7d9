#include "lockstep/server/process/serve_security.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class ServeSecurityTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::string& addresses) {
    return CheckServeSecurity(&fs_, security_, addresses, absl::FromUnixSeconds(1800000000));
  }
  MemoryFileSystem fs_;
  ServeSecurity security_;
};

TEST_F(ServeSecurityTest, LocalAddressesNeedNothing) {
  for (const char* const addresses :
       {"", "127.0.0.1:0", "127.1.2.3:2222,unix:/tmp/x", "localhost:2222", "[::1]:2222", "unix-abstract:x"}) {
    EXPECT_EQ(Check(addresses), absl::OkStatus()) << addresses;
  }
}

TEST_F(ServeSecurityTest, OtherAddressesNeedTlsOrConsent) {
  for (const char* const addresses :
       {"0.0.0.0:2222", ":2222", "[::]:2222", "127.0.0.1:1,10.0.0.1:2", "192.168.1.1:0", "no.such.host.invalid:1"}) {
    const absl::Status status = Check(addresses);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << addresses;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--insecure")) << addresses;
  }
  security_.insecure = true;
  EXPECT_EQ(Check("0.0.0.0:2222"), absl::OkStatus());
}

TEST_F(ServeSecurityTest, WrongFilesAreNamed) {
  security_.token_file = "absent";
  EXPECT_THAT(std::string(Check("127.0.0.1:0").message()), HasSubstr("absent"));
  ASSERT_TRUE(WriteFileAtomically(&fs_, "tokens", "0123456789abcdef").ok());
  security_.token_file = "tokens";
  EXPECT_THAT(std::string(Check("127.0.0.1:0").message()), HasSubstr("--token_file needs --tls_dir"));
  security_.tls_dir = "nowhere";
  EXPECT_THAT(std::string(Check("0.0.0.0:0").message()), HasSubstr("nowhere/ca.crt"));
}

}  // namespace
}  // namespace lockstep
