#include "lockstep/server/process/address_file.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(AdvertisedMasterTest, IsWhereOthersReachTheChief) {
  const char* const cases[][3] = {
      // listening, advertise, master
      {"127.0.0.1:2222", "", "grpc://127.0.0.1:2222"},
      {"0.0.0.0:2222", "", "grpc://node-7:2222"},
      {"[::]:2222", "", "grpc://node-7:2222"},
      {"0.0.0.0:2222", "10.0.0.5", "grpc://10.0.0.5:2222"},
      {"0.0.0.0:2222", "fd00::5", "grpc://[fd00::5]:2222"},
      {"0.0.0.0:2222", "[fd00::5]", "grpc://[fd00::5]:2222"},
      {"0.0.0.0:2222", "gate.example:80", "grpc://gate.example:80"},
      {":2222", "", "grpc://node-7:2222"},
      {"0:2222", "", "grpc://node-7:2222"},
      {"[::0]:2222", "", "grpc://node-7:2222"},
      {":::2222", "", "grpc://node-7:2222"},
      {"ipv4:0.0.0.0:2222", "", "grpc://node-7:2222"},
      {"ipv4:10.0.0.5:2222", "", "grpc://10.0.0.5:2222"},
      {"ipv6:[::1]:2222", "", "grpc://[::1]:2222"},
      {"dns:host:2222", "", "grpc://host:2222"},
      {"dns:///host:2222", "", "grpc://host:2222"},
      {"0.0.0.0:2222", "grpc://10.0.0.5", "grpc://10.0.0.5:2222"},
      {"0.0.0.0:2222", "grpc://10.0.0.5:80/", "grpc://10.0.0.5:80"},
      {"0.0.0.0:2222", " 10.0.0.5\n", "grpc://10.0.0.5:2222"},
      {"unix:/run/chief.sock", "", "unix:/run/chief.sock"},
      {"unix:/run/chief.sock", "gate.example:80", "grpc://gate.example:80"},
  };
  for (const auto& [listening, advertise, master] : cases) {
    const auto advertised = AdvertisedMaster(listening, advertise, "node-7");
    ASSERT_TRUE(advertised.ok()) << advertised.status();
    EXPECT_EQ(*advertised, master);
  }
}

TEST(AdvertisedMasterTest, RefusesUnreachableAddresses) {
  for (const char* advertise : {"a b", " ", "grpc://", "grpc://a/b", "unix:", "a,b", "a:port", "file:/x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AdvertisedMaster("0.0.0.0:2222", advertise, "node-7").status())) << advertise;
  }
  EXPECT_THAT(
      std::string(AdvertisedMaster("0.0.0.0:2222", "a b", "node-7").status().message()),
      HasSubstr("--advertise takes a host, HOST:PORT or unix:PATH by which workers reach the chief, not \"a b\""));
  EXPECT_THAT(std::string(AdvertisedMaster("unix:/s", "node-7", "node-7").status().message()),
              HasSubstr("needs a port, but the chief listens only on unix:/s"));
}

constexpr char kListen[] = "127.0.0.1:0";

class AddressFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(memory_.CreateDirectory("/run").ok()); }
  AddressFile New(const std::string& advertise = "") {
    AddressFile::Options options;
    options.fs = &memory_;
    options.path = "/run/chief";
    options.advertise = advertise;
    options.machine = "node-7";
    auto file = AddressFile::Create(options, kListen);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  std::string Contents() {
    const auto contents = ReadFile(&memory_, "/run/chief");
    return contents.ok() ? *contents : "none";
  }

  MemoryFileSystem memory_;
};

TEST_F(AddressFileTest, HasTheAddressThenAMarkAtTheRunsEnd) {
  AddressFile file = New();
  EXPECT_TRUE(file.Prepare().ok());
  EXPECT_EQ(Contents(), "none");
  EXPECT_TRUE(file.Write("0.0.0.0:2222").ok());
  EXPECT_EQ(Contents(), "grpc://node-7:2222\n");
  EXPECT_TRUE(file.End(absl::OkStatus()).ok());
  EXPECT_EQ(Contents(), "finished\n");
}

TEST_F(AddressFileTest, TheLogSaysWhoseAddressItIs) {
  AddressFile file = New();
  testing::internal::CaptureStderr();
  EXPECT_TRUE(file.Write("0.0.0.0:2222").ok());
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("/run/chief says that the chief is at grpc://node-7:2222; --advertise=HOST names another host"));
}

TEST_F(AddressFileTest, SaysWhyARunFailed) {
  AddressFile file = New();
  EXPECT_TRUE(file.End(absl::InvalidArgumentError("the loss of step 5 is not finite")).ok());
  EXPECT_EQ(Contents(), "failed: the loss of step 5 is not finite\n");
}

TEST_F(AddressFileTest, ARunThatMayBeResumedIsNotOver) {
  AddressFile file = New("10.0.0.5");
  EXPECT_TRUE(file.Write("0.0.0.0:2222").ok());
  for (const absl::Status& run : {absl::CancelledError("stopped at step 5"), absl::ResourceExhaustedError("disk full"),
                                  absl::InternalError("I/O error")}) {
    EXPECT_TRUE(file.End(run).ok());
    EXPECT_EQ(Contents(), "grpc://10.0.0.5:2222\n");
  }
}

TEST_F(AddressFileTest, TheNextRunReplacesTheMarkOnly) {
  AddressFile file = New();
  EXPECT_TRUE(file.End(absl::OkStatus()).ok());
  EXPECT_TRUE(New().Prepare().ok());
  EXPECT_EQ(Contents(), "none") << "workers wait for this chief";
  EXPECT_TRUE(file.Write("127.0.0.1:1").ok());
  EXPECT_TRUE(New().Prepare().ok());
  EXPECT_EQ(Contents(), "grpc://127.0.0.1:1\n");
}

TEST_F(AddressFileTest, AFailedStartRestoresTheMark) {
  EXPECT_TRUE(New().End(absl::OkStatus()).ok());
  AddressFile file = New();
  EXPECT_TRUE(file.PutBack().ok()) << "nothing was taken away yet";
  EXPECT_TRUE(file.Prepare().ok());
  EXPECT_EQ(Contents(), "none");
  EXPECT_TRUE(file.PutBack().ok());
  EXPECT_EQ(Contents(), "finished\n");
  EXPECT_TRUE(file.Prepare().ok());
  EXPECT_TRUE(New().Write("127.0.0.1:1").ok());
  EXPECT_TRUE(file.PutBack().ok());
  EXPECT_EQ(Contents(), "grpc://127.0.0.1:1\n") << "another chief is there";
}

TEST_F(AddressFileTest, RefusesAnUnreachableAddress) {
  AddressFile::Options options;
  options.fs = &memory_;
  options.path = "/run/chief";
  options.machine = "node-7";
  for (const char* listen :
       {":0", "0:2222", "dns:host:0", "ipv4:0.0.0.0:2222", "unix:/s", "unix:/s,:2222", "a:1,b:2"}) {
    EXPECT_TRUE(AddressFile::Create(options, listen).ok()) << listen;
  }
  for (const char* listen : {"", "host", "dns://8.8.8.8/host:2222", "a b:1", "unix:"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AddressFile::Create(options, listen).status())) << listen;
  }
  options.advertise = "node-7";
  EXPECT_TRUE(absl::IsInvalidArgument(AddressFile::Create(options, "unix:/s").status())) << "it has no port";
  const std::string both = "10.0.0.5:2222,unix:/s";
  options.advertise = "unix:/s";
  EXPECT_TRUE(AddressFile::Create(options, both).ok());
  EXPECT_EQ(AdvertisedMaster("10.0.0.5:2222", "unix:/s", "node-7").value(), "unix:/s");
  options.advertise = "unix:/other";
  EXPECT_THAT(std::string(AddressFile::Create(options, both).status().message()),
              HasSubstr("--advertise=unix:/other is none of the addresses"));
  options.advertise = "";
  options.machine = "";
  EXPECT_TRUE(absl::IsInvalidArgument(AddressFile::Create(options, ":2222").status())) << "it has no name";
}

TEST_F(AddressFileTest, NeedsItsDirectoryBeforeTheStart) {
  AddressFile::Options options;
  options.fs = &memory_;
  options.path = "/none/chief";
  const absl::Status status = AddressFile::Create(options, kListen).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/none/chief"));
}

TEST_F(AddressFileTest, WithoutAPathThereIsNone) {
  AddressFile::Options options;
  options.fs = &memory_;
  auto file = AddressFile::Create(options, kListen);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->Prepare().ok());
  EXPECT_TRUE(file->Write("127.0.0.1:1").ok());
  EXPECT_TRUE(file->End(absl::OkStatus()).ok());
  options.advertise = "node-7";
  EXPECT_THAT(std::string(AddressFile::Create(options, kListen).status().message()),
              HasSubstr("--address_file, which is missing"));
}

TEST_F(AddressFileTest, AKillLeavesTheOldLineOrTheNewOne) {
  ASSERT_TRUE(New().Write("127.0.0.1:1").ok());
  for (int64_t operations = 0; operations < 8; ++operations) {
    FaultyFileSystem killed(&memory_);
    AddressFile::Options options;
    options.fs = &killed;
    options.path = "/run/chief";
    AddressFile file = AddressFile::Create(options, kListen).value();
    killed.KillAfter(operations);
    file.Write("127.0.0.1:2").IgnoreError();
    const std::string contents = Contents();
    EXPECT_TRUE(contents == "grpc://127.0.0.1:1\n" || contents == "grpc://127.0.0.1:2\n") << contents;
  }
  EXPECT_EQ(Contents(), "grpc://127.0.0.1:2\n");
}

}  // namespace
}  // namespace lockstep
