#include "lockstep/train/evaluation/recorded_run.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class RecordedRunTest : public ::testing::Test {
 protected:
  RecordedRunTest() { flags_.logdir = "/run"; }
  absl::StatusOr<std::string> FindCheckpoint() { return flags_.FindCheckpoint(&fs_, err_); }

  MemoryFileSystem fs_;
  RecordedRunFlags flags_;
  std::ostringstream err_;
};

TEST_F(RecordedRunTest, AppliesOverridesToTheRecordedConfig) {
  RecordSignRun(&fs_, "/run");
  EXPECT_EQ(flags_.LoadConfig(&fs_)->training().steps(), 10);
  flags_.set = {"training.steps=20"};
  EXPECT_EQ(flags_.LoadConfig(&fs_)->training().steps(), 20);
  flags_.set = {"training.steps=-1"};
  EXPECT_EQ(flags_.LoadConfig(&fs_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RecordedRunTest, NamesADirectoryThatIsNoLogdir) {
  const auto config = flags_.LoadConfig(&fs_);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(config.status().message(), "/run is not a run's logdir: it has no lockstep.textproto");
}

TEST_F(RecordedRunTest, TakesTheNewestCheckpointThatIsValid) {
  RecordSignRun(&fs_, "/run");
  EXPECT_EQ(FindCheckpoint().status().message(), "/run has no checkpoint yet");
  SaveSignCheckpoint(&fs_, "/run", 5, 1);
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(FindCheckpoint().value(), "/run/model.ckpt-10");
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/model.ckpt-10.data-00000-of-00001", "short").ok());
  EXPECT_EQ(FindCheckpoint().value(), "/run/model.ckpt-5");
  EXPECT_THAT(err_.str(), HasSubstr("damaged: /run/model.ckpt-10: "));
}

TEST_F(RecordedRunTest, TakesTheCheckpointThatIsNamedAlsoByAFile) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 5, 1);
  flags_.logdir = "";
  flags_.checkpoint = "/run/model.ckpt-5.index";
  EXPECT_EQ(FindCheckpoint().value(), "/run/model.ckpt-5");
  EXPECT_EQ(flags_.Directory().value(), "/run");
  EXPECT_EQ(flags_.LoadConfig(&fs_)->training().steps(), 10);
  flags_.checkpoint = "/run/model.ckpt-6";
  EXPECT_EQ(FindCheckpoint().status().message(),
            "there is no checkpoint /run/model.ckpt-6; the directory has /run/model.ckpt-5");
  flags_.logdir = "/run";
  flags_.checkpoint = "20";
  EXPECT_EQ(FindCheckpoint().status().message(), "there is no checkpoint 20; the directory has /run/model.ckpt-5");
}

TEST_F(RecordedRunTest, NeedsALogdirOrACheckpoint) {
  flags_.logdir = "";
  EXPECT_EQ(flags_.Directory().status().code(), absl::StatusCode::kInvalidArgument);
  flags_.checkpoint = "model.ckpt-5";
  EXPECT_EQ(flags_.Directory().value(), ".");
}

}  // namespace
}  // namespace lockstep
