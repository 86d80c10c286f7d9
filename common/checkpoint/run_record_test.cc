#include "lockstep/common/checkpoint/run_record.h"

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest() { EXPECT_TRUE(fs_.CreateDirectory("logs").ok()); }
  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(&fs_, "logs/lockstep.textproto", text).ok()); }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
};

TEST_F(RunRecordTest, RoundTrips) {
  v1::RunRecord record;
  record.mutable_config()->mutable_training()->set_seed(7);
  ApplyDefaults(record.mutable_config());
  record.mutable_model()->add_variables()->set_name("w");
  record.mutable_data()->set_examples(3);
  ASSERT_TRUE(WriteRunRecord(&fs_, "logs", record).ok());
  const auto read = ReadRunRecord(&fs_, "logs").value();
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*read, record));
}

TEST_F(RunRecordTest, ADirectoryWithoutARecordIsNoError) {
  EXPECT_FALSE(ReadRunRecord(&fs_, "logs").value().has_value());
  EXPECT_FALSE(ReadRunRecord(&fs_, "absent").value().has_value());
}

TEST_F(RunRecordTest, AnOlderRecordGetsTheDefaults) {
  Write("config { optimizer { momentum {} } }");
  const auto record = ReadRunRecord(&fs_, "logs").value();
  EXPECT_EQ(record->config().optimizer().momentum().momentum(), 0.9f);
  EXPECT_FALSE(record->has_data());
}

TEST_F(RunRecordTest, OverridesComeBeforeDefaults) {
  Write("config { optimizer { sgd {} } training { steps: 10 } }");
  const auto record = ReadRunRecord(&fs_, "logs", {"optimizer.adam.beta1=0.8", "training.steps=20"}).value();
  EXPECT_EQ(record->config().training().steps(), 20);
  EXPECT_EQ(record->config().optimizer().adam().beta1(), 0.8f);
  EXPECT_EQ(record->config().optimizer().adam().beta2(), 0.999f);
}

TEST_F(RunRecordTest, NamesTheLineOfAnUnparsableRecord) {
  Write("config {\n  training { stepz: 3 }\n}\n");
  const absl::Status status = ReadRunRecord(&fs_, "logs").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("logs/lockstep.textproto:2:"));
}

TEST_F(RunRecordTest, OverridingAnUnknownFieldIsAnError) {
  Write("config {}");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRunRecord(&fs_, "logs", {"training.stepz=3"}).status()));
}

TEST_F(RunRecordTest, AnErrorOfTheDiskIsNotAnAbsentRecord) {
  Write("config {}");
  fs_.FailMatching(FaultyFileSystem::Operation::kRead, "logs/lockstep.textproto",
                   absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(ReadRunRecord(&fs_, "logs").status()));
}

}  // namespace
}  // namespace lockstep
