#include "lockstep/common/checkpoint/checkpoint_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointStateTest : public ::testing::Test {
 protected:
  CheckpointStateTest() { EXPECT_TRUE(fs_.CreateDirectory("/runs/a").ok()); }
  void WriteText(absl::string_view text) { ASSERT_TRUE(WriteFileAtomically(&fs_, "/runs/a/checkpoint", text).ok()); }
  void Touch(const std::string& path) { ASSERT_TRUE(WriteFileAtomically(&fs_, path, "").ok()); }
  v1::CheckpointState Read() { return ReadCheckpointState(&fs_, "/runs/a").value().value(); }

  MemoryFileSystem fs_;
};

TEST_F(CheckpointStateTest, IsAbsentBeforeTheFirstCheckpoint) {
  EXPECT_FALSE(ReadCheckpointState(&fs_, "/runs/a").value().has_value());
  EXPECT_FALSE(ReadCheckpointState(&fs_, "/missing").value().has_value());
  EXPECT_FALSE(LatestCheckpoint(&fs_, "/runs/a").value().has_value());
}

// SAVE-29. Deliberately differs from SAVE-26: paths inside the directory are stored relative to it, so that the
// directory can be moved.
TEST_F(CheckpointStateTest, StoresRelativePathsReturnsWholeOnes) {
  ASSERT_TRUE(
      WriteCheckpointState(&fs_, "/runs/a", "/runs/a/m-3", {"/runs/a/m-2", "/elsewhere/m-1", "/runs/a/m-3"}).ok());
  EXPECT_EQ(ReadFile(&fs_, "/runs/a/checkpoint").value(),
            "model_checkpoint_path: \"m-3\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n"
            "all_model_checkpoint_paths: \"/elsewhere/m-1\"\n"
            "all_model_checkpoint_paths: \"m-3\"\n");
  const v1::CheckpointState state = Read();
  EXPECT_EQ(state.model_checkpoint_path(), "/runs/a/m-3");
  EXPECT_THAT(state.all_model_checkpoint_paths(), ElementsAre("/runs/a/m-2", "/elsewhere/m-1", "/runs/a/m-3"));
}

// SAVE-27
TEST_F(CheckpointStateTest, StoresTheNameUnderARelativeDirectory) {
  ASSERT_TRUE(fs_.CreateDirectory("train").ok());
  ASSERT_TRUE(WriteCheckpointState(&fs_, "train", "train/model-0", {}).ok());
  EXPECT_THAT(ReadFile(&fs_, "train/checkpoint").value(), HasSubstr("model_checkpoint_path: \"model-0\""));
  EXPECT_EQ(ReadCheckpointState(&fs_, "train").value()->model_checkpoint_path(), "train/model-0");
  // A directory whose name merely begins with the same characters is a different directory.
  ASSERT_TRUE(WriteCheckpointState(&fs_, "train", "train2/model-0", {}).ok());
  EXPECT_THAT(ReadFile(&fs_, "train/checkpoint").value(), HasSubstr("model_checkpoint_path: \"train2/model-0\""));
}

TEST_F(CheckpointStateTest, AppendsTheNewestWhenItIsNotTheLast) {
  ASSERT_TRUE(WriteCheckpointState(&fs_, "/runs/a", "/runs/a/m-3", {"/runs/a/m-2"}).ok());
  EXPECT_THAT(Read().all_model_checkpoint_paths(), ElementsAre("/runs/a/m-2", "/runs/a/m-3"));
}

// SAVE-30
TEST_F(CheckpointStateTest, RefusesAFileWithoutNewestCheckpoint) {
  for (const char* text : {"", "all_model_checkpoint_paths: \"m-1\"\n"}) {
    WriteText(text);
    const absl::Status status = ReadCheckpointState(&fs_, "/runs/a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "/runs/a/checkpoint: no model_checkpoint_path");
  }
}

TEST_F(CheckpointStateTest, SaysWhereAFileDoesNotParse) {
  WriteText("model_checkpoint_path: \"m-1\"\nall_checkpoints: \"m-1\"\n");
  const absl::Status status = ReadCheckpointState(&fs_, "/runs/a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/runs/a/checkpoint: line 2, column 16: "));
  EXPECT_EQ(LatestCheckpoint(&fs_, "/runs/a").status(), status);
}

// SAVE-32
TEST_F(CheckpointStateTest, JoinsRelativeEntriesWithTheDirectory) {
  WriteText("model_checkpoint_path: \"./model.ckpt-687529\"\n");
  EXPECT_EQ(Read().model_checkpoint_path(), "/runs/a/./model.ckpt-687529");
}

TEST_F(CheckpointStateTest, ReadsTimestampsOfTensorFlow) {
  WriteText(
      "model_checkpoint_path: \"m-1\"\nall_model_checkpoint_paths: \"m-1\"\n"
      "all_model_checkpoint_timestamps: 1577836800.5\nlast_preserved_timestamp: 1577836800.25\n");
  EXPECT_EQ(Read().all_model_checkpoint_timestamps(0), 1577836800.5);
}

// SAVE-33
TEST_F(CheckpointStateTest, MissingIndexMeansNoLatestCheckpoint) {
  WriteText("model_checkpoint_path: \"m-1\"\n");
  EXPECT_FALSE(LatestCheckpoint(&fs_, "/runs/a").value().has_value());
  Touch("/runs/a/m-1.index");
  EXPECT_EQ(LatestCheckpoint(&fs_, "/runs/a").value(), "/runs/a/m-1");
}

TEST_F(CheckpointStateTest, ReportsAnUnknowableLatestCheckpoint) {
  WriteText("model_checkpoint_path: \"m-1\"\n");
  Touch("/runs/a/m-1.index");
  FaultyFileSystem faulty(&fs_);
  ASSERT_TRUE(LatestCheckpoint(&faulty, "/runs/a").ok());
  const int64_t operations = faulty.operations();
  for (int64_t n = 1; n <= operations; ++n) {
    faulty.FailOperation(n, absl::InternalError("Input/output error"));
    EXPECT_EQ(LatestCheckpoint(&faulty, "/runs/a").status().code(), absl::StatusCode::kInternal) << n;
  }
}

TEST_F(CheckpointStateTest, RemovesTheFilesOfOneCheckpointOnly) {
  for (const char* name : {"m-1.index", "m-1.meta", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002", "m-10.index",
                           "m-10.data-00000-of-00001", "m-1.database", "m-1"}) {
    Touch(JoinPath("/runs/a", name));
  }
  ASSERT_TRUE(RemoveCheckpoint(&fs_, "/runs/a/m-1").ok());
  EXPECT_THAT(fs_.ListDirectory("/runs/a").value(),
              ElementsAre("m-1", "m-1.database", "m-10.data-00000-of-00001", "m-10.index"));
  EXPECT_TRUE(RemoveCheckpoint(&fs_, "/runs/a/m-1").ok());
  EXPECT_TRUE(RemoveCheckpoint(&fs_, "/missing/m-1").ok());
}

TEST_F(CheckpointStateTest, ReportsAFailingRemoval) {
  Touch("/runs/a/m-1.index");
  FaultyFileSystem faulty(&fs_);
  faulty.FailOperation(1, absl::PermissionDeniedError("read-only"));
  EXPECT_EQ(RemoveCheckpoint(&faulty, "/runs/a/m-1").code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(CheckpointStateTest, FindsTheStepInAPrefix) {
  EXPECT_EQ(StepOfCheckpoint("/runs/a-1/model.ckpt-123"), 123);
  EXPECT_EQ(StepOfCheckpoint("model.ckpt-00000005"), 5);
  EXPECT_EQ(StepOfCheckpoint("m-9223372036854775807"), INT64_MAX);
  for (const char* prefix : {"/runs/a-1/model.ckpt", "m-", "m-1a", "m-+1", "m-9223372036854775808", "", "-"}) {
    EXPECT_FALSE(StepOfCheckpoint(prefix).has_value()) << prefix;
  }
}

}  // namespace
}  // namespace lockstep
