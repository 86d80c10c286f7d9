#include "lockstep/common/cluster/address_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AddressFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs_.CreateDirectory("/run").ok()); }
  absl::StatusOr<std::vector<std::string>> FindIn(const std::string& contents) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "/run/chief", contents).ok());
    return Find();
  }
  absl::StatusOr<std::vector<std::string>> Find() {
    return FindTargets(&fs_, ParseMasterAddress("file:/run/chief").value());
  }

  MemoryFileSystem fs_;
};

TEST_F(AddressFileTest, AnAddressWithoutAFileIsItself) {
  EXPECT_THAT(*FindTargets(&fs_, ParseMasterAddress("grpc://a:1,b:2").value()), ElementsAre("a:1", "b:2"));
}

TEST_F(AddressFileTest, IsReadAtEachSearch) {
  EXPECT_THAT(*FindIn(AddressLine("grpc://a:1")), ElementsAre("a:1"));
  EXPECT_THAT(*FindIn(AddressLine("grpc://b:2,unix:/run/chief.sock")), ElementsAre("b:2", "unix:/run/chief.sock"));
}

TEST_F(AddressFileTest, MayComeLater) {
  EXPECT_TRUE(absl::IsUnavailable(Find().status()));
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("no chief has written /run/chief yet"));
  EXPECT_TRUE(absl::IsUnavailable(FindIn("").status()));
}

TEST_F(AddressFileTest, SaysThatTheRunIsOver) {
  const absl::Status finished = FindIn(EndLine(absl::OkStatus())).status();
  EXPECT_TRUE(absl::IsOutOfRange(finished));
  EXPECT_EQ(finished.message(), "the run is over, says /run/chief");
  EXPECT_TRUE(IsEndOfRun(finished));
  const absl::Status failed = FindIn(EndLine(absl::InvalidArgumentError("the loss of step 5\nis not finite"))).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed));
  EXPECT_EQ(failed.message(), "the loss of step 5 is not finite");
  EXPECT_TRUE(IsEndOfRun(failed));
}

TEST_F(AddressFileTest, ARunMayFailWithoutAMessage) {
  const absl::Status failed = FindIn(EndLine(absl::InvalidArgumentError(""))).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed));
  EXPECT_EQ(failed.message(), "the run has failed, says /run/chief");
  EXPECT_TRUE(IsEndOfRun(failed));
  EXPECT_THAT(*FindIn("failed:80"), ElementsAre("failed:80")) << "a host of that name";
}

TEST_F(AddressFileTest, NoOtherErrorSaysThatTheRunIsOver) {
  EXPECT_FALSE(IsEndOfRun(absl::OkStatus()));
  EXPECT_FALSE(IsEndOfRun(absl::OutOfRangeError("the run is over, says /run/chief")));
  EXPECT_FALSE(IsEndOfRun(absl::FailedPreconditionError("the loss of step 5 is not finite")));
  EXPECT_FALSE(IsEndOfRun(Find().status()));
  EXPECT_FALSE(IsEndOfRun(FindIn("chief").status()));
}

TEST_F(AddressFileTest, RefusesAnythingElse) {
  for (const char* contents : {"chief", "file:/other", "root:x:0:0:root\ndaemon:x:1",
                               "\x7f"
                               "ELF",
                               "finished?"}) {
    const absl::Status status = FindIn(contents).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/run/chief has no address of a chief"));
  }
}

TEST_F(AddressFileTest, AnUnreadableFileIsNotAMissingOne) {
  const MasterAddress directory = ParseMasterAddress("file:/").value();
  EXPECT_FALSE(FindTargets(FileSystem::Real(), directory).ok());
  EXPECT_FALSE(absl::IsUnavailable(FindTargets(FileSystem::Real(), directory).status()));
}

}  // namespace
}  // namespace lockstep
