#include "lockstep/common/checkpoint/latest_valid.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NewestValidCheckpointTest : public ::testing::Test {
 protected:
  NewestValidCheckpointTest() { EXPECT_TRUE(fs_.CreateDirectory("d").ok()); }

  static std::string Prefix(int step) { return absl::StrCat("d/model.ckpt-", step); }
  void Save(const std::string& prefix, bool by_saver = false) {
    BundleWriterOptions options;
    options.written_by_saver = by_saver;
    auto writer = BundleWriter::Create(&fs_, prefix, options).value();
    ASSERT_TRUE(writer->Add("v", v1::DT_UINT8, {4}, "data").ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  void Save(int step) { Save(Prefix(step)); }
  void List(int chosen, const std::vector<int>& steps) {
    std::string text = absl::StrCat("model_checkpoint_path: \"model.ckpt-", chosen, "\"\n");
    for (const int step : steps) absl::StrAppend(&text, "all_model_checkpoint_paths: \"model.ckpt-", step, "\"\n");
    ASSERT_TRUE(WriteFileAtomically(&fs_, "d/checkpoint", text).ok());
  }
  void Damage(int step) { fs_.FlipBits(Prefix(step) + ".data-00000-of-00001", 2, 1); }

  absl::StatusOr<absl::optional<std::string>> Find(FileSystem* fs) {
    reported_.clear();
    return NewestValidCheckpoint(fs, "d", [this](const std::string& prefix, const absl::Status& damage) {
      reported_.push_back(prefix);
      EXPECT_THAT(std::string(damage.message()), HasSubstr(prefix));
    });
  }
  std::string Found() {
    const auto found = Find(&fs_);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->value_or("none") : "error";
  }

  MemoryFileSystem fs_;
  std::vector<std::string> reported_;
};

TEST_F(NewestValidCheckpointTest, IsNoneOnlyWithoutAnyCheckpoint) {
  EXPECT_EQ(Found(), "none");
  Save("d/export-3");
  EXPECT_EQ(Found(), "none") << "another base name";
  EXPECT_FALSE(HasCheckpoints(&fs_, "d").value());
  EXPECT_TRUE(HasCheckpoints(&fs_, "d", "export").value());
  EXPECT_FALSE(NewestValidCheckpoint(&fs_, "missing", [](const std::string&, const absl::Status&) {})->has_value());
}

TEST_F(NewestValidCheckpointTest, IsTheStateFilesChoice) {
  for (const int step : {9, 10, 11}) Save(step);
  List(11, {9, 10, 11});
  EXPECT_EQ(Found(), Prefix(11));
  List(9, {9, 10, 11});
  EXPECT_EQ(Found(), Prefix(9));
  // The user has chosen this checkpoint, and may have removed the others from the list.
  List(9, {9});
  EXPECT_EQ(Found(), Prefix(9));
  EXPECT_THAT(reported_, IsEmpty());
}

// A search that compares all pairs would take minutes and exceed the test's time limit.
TEST_F(NewestValidCheckpointTest, IsFoundAmongManyInLinearTime) {
  constexpr int kCheckpoints = 300000;
  std::vector<int> steps;
  for (int step = 1; step < kCheckpoints; ++step) {
    steps.push_back(step);
    ASSERT_TRUE(fs_.NewWritableFile(Prefix(step) + ".index").ok());
  }
  Save(kCheckpoints);
  EXPECT_EQ(Found(), Prefix(kCheckpoints));
  steps.push_back(kCheckpoints);
  List(kCheckpoints, steps);
  EXPECT_EQ(Found(), Prefix(kCheckpoints));
}

TEST_F(NewestValidCheckpointTest, PassesOverDamagedOnesAndNamesThem) {
  for (const int step : {9, 10, 11}) Save(step);
  List(11, {9, 10, 11});
  Damage(11);
  EXPECT_EQ(Found(), Prefix(10));
  EXPECT_THAT(reported_, ElementsAre(Prefix(11)));
  fs_.Truncate(Prefix(10) + ".index", 30);
  EXPECT_EQ(Found(), Prefix(9));
  EXPECT_THAT(reported_, ElementsAre(Prefix(11), Prefix(10)));
  ASSERT_TRUE(RemoveCheckpoint(&fs_, Prefix(11)).ok());
  EXPECT_EQ(Found(), Prefix(9));
}

TEST_F(NewestValidCheckpointTest, FindsUnlistedOnesNewerBeforeOlder) {
  for (const int step : {5, 90, 100, 110, 120}) Save(step);
  List(100, {90, 100});
  EXPECT_EQ(Found(), Prefix(100));
  Damage(100);
  EXPECT_EQ(Found(), Prefix(120));
  Damage(120);
  EXPECT_EQ(Found(), Prefix(110));
  Damage(110);
  EXPECT_EQ(Found(), Prefix(90));
  Damage(90);
  EXPECT_EQ(Found(), Prefix(5));
  EXPECT_THAT(reported_, ElementsAre(Prefix(100), Prefix(120), Prefix(110), Prefix(90)));
}

TEST_F(NewestValidCheckpointTest, FindsTheFirstUnlistedCheckpoint) {
  Save(9);
  Save(10);
  Save("d/best-99");
  EXPECT_EQ(Found(), Prefix(10));
}

TEST_F(NewestValidCheckpointTest, LooksForTheBaseNameOfTheChoice) {
  Save("d/best-9");
  Save(10);
  ASSERT_TRUE(WriteCheckpointState(&fs_, "d", "d/best-10", {}).ok());
  EXPECT_EQ(Found(), "d/best-9");
}

// SM-20
TEST_F(NewestValidCheckpointTest, IsAnErrorWhenTheOnlyCheckpointIsGone) {
  List(7, {7});
  EXPECT_TRUE(HasCheckpoints(&fs_, "d").value());
  const absl::Status status = Find(&fs_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "none of the 1 checkpoints of d can be read; the newest is d/model.ckpt-7");
  EXPECT_THAT(reported_, ElementsAre(Prefix(7)));
}

TEST_F(NewestValidCheckpointTest, IsAnErrorWhenAllAreDamaged) {
  Save(1);
  Save(2);
  Damage(1);
  Damage(2);
  EXPECT_EQ(Find(&fs_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(reported_, ElementsAre(Prefix(2), Prefix(1)));
}

TEST_F(NewestValidCheckpointTest, DoesNotGuessPastABadStateFile) {
  Save(1);
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/checkpoint", "model_checkpoint_path: model.ckpt-1").ok());
  EXPECT_EQ(Find(&fs_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(HasCheckpoints(&fs_, "d").value());
}

// Falling back to an older checkpoint would lose work.
TEST_F(NewestValidCheckpointTest, FileSystemFailureIsNotDamage) {
  Save(1);
  Save(2);
  List(2, {1, 2});
  FaultyFileSystem faulty(&fs_);
  ASSERT_TRUE(Find(&faulty).ok());
  const int64_t operations = faulty.operations();
  for (int64_t n = 1; n <= operations; ++n) {
    faulty.FailOperation(n, absl::PermissionDeniedError("not yours"));
    EXPECT_EQ(Find(&faulty).status().code(), absl::StatusCode::kPermissionDenied) << n;
    faulty.FailOperation(n, absl::InternalError("Input/output error"));
    EXPECT_EQ(Find(&faulty).status().code(), absl::StatusCode::kInternal) << n;
  }
  EXPECT_THAT(reported_, IsEmpty());
}

// Simulates a device or network file system that cannot be read for a while.
TEST_F(NewestValidCheckpointTest, LooksTwiceBeforeItTakesAnOlderOne) {
  Save(1);
  Save(2);
  List(2, {1, 2});
  FaultyFileSystem faulty(&fs_);
  ASSERT_TRUE(Find(&faulty).ok());
  const int64_t operations = faulty.operations();
  for (int64_t n = 5; n <= operations; ++n) {  // The first 4 read the state file and the directory.
    faulty.FailOperation(n, absl::DataLossError("d/model.ckpt-2: Input/output error"));
    EXPECT_EQ(Find(&faulty)->value(), Prefix(2)) << n;
    EXPECT_THAT(reported_, IsEmpty());
  }
}

TEST_F(NewestValidCheckpointTest, PassesOverOneThatTheDeviceCannotRead) {
  Save(1);
  Save(2);
  List(2, {1, 2});
  FaultyFileSystem faulty(&fs_);
  faulty.FailMatching(FaultyFileSystem::Operation::kRead, "model.ckpt-2.data",
                      absl::DataLossError("d/model.ckpt-2: Input/output error"));
  EXPECT_EQ(Find(&faulty)->value(), Prefix(1));
  EXPECT_THAT(reported_, ElementsAre(Prefix(2)));
}

// A user's Saver wrote into the logdir and replaced the state file.
TEST_F(NewestValidCheckpointTest, SkipsAndNamesCheckpointsOfSavers) {
  Save(1);
  Save(2);
  Save("d/mine-7", true);
  Save("d/mine-8", true);
  Save(Prefix(9), true);
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/checkpoint",
                                  "model_checkpoint_path: \"mine-8\"\n"
                                  "all_model_checkpoint_paths: \"mine-7\"\n"
                                  "all_model_checkpoint_paths: \"mine-8\"\n")
                  .ok());
  EXPECT_EQ(Found(), Prefix(2));
  EXPECT_THAT(reported_, ElementsAre("d/mine-8", Prefix(9), "d/mine-7"));
  // A caller that only inspects checkpoints accepts any of them.
  const auto any = NewestValidCheckpoint(
      &fs_, "d", [](const std::string&, const absl::Status&) {}, CheckpointsOf::kAnyone);
  EXPECT_EQ(any->value(), "d/mine-8");
}

// Starting from initial values would silently lose what the user believes to be the run's checkpoint.
TEST_F(NewestValidCheckpointTest, IsAnErrorWhenASaverWroteAll) {
  Save(Prefix(3), true);
  const auto found = Find(&fs_);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("warm_start: \"d/model.ckpt-3\""));
  // If there is also a damaged checkpoint, the damage is reported.
  Save(2);
  Damage(2);
  EXPECT_TRUE(absl::IsDataLoss(Find(&fs_).status()));
}

// Tests that the last checkpoint read is the one returned, no matter which others are examined.
class ReadNewestCheckpointTest : public NewestValidCheckpointTest {
 protected:
  absl::StatusOr<absl::optional<std::string>> Read(FileSystem* fs) {
    const auto read = [this](const BundleReader& reader) {
      // Simulates reading in place, which overwrites the previous contents.
      contents_ = "half of " + reader.prefix();
      if (failures_ > 0 && reader.prefix() == failing_) {
        --failures_;
        return absl::DataLossError("cannot be read: " + reader.prefix());
      }
      const absl::Status status = error_.ok() ? reader.Verify() : error_;
      if (status.ok()) contents_ = reader.prefix();
      return status;
    };
    return ReadNewestCheckpoint(fs, "d", read, [](const std::string&, const absl::Status&) {});
  }

  std::string contents_, failing_;
  int failures_ = 0;
  absl::Status error_;
};

TEST_F(ReadNewestCheckpointTest, LeavesTheContentsOfTheOneThatHolds) {
  for (const int step : {1, 2, 3}) Save(step);
  List(3, {1, 2, 3});
  EXPECT_EQ(Read(&fs_)->value(), Prefix(3));
  EXPECT_EQ(contents_, Prefix(3));
  Damage(3);
  Damage(2);
  EXPECT_EQ(Read(&fs_)->value(), Prefix(1));
  EXPECT_EQ(contents_, Prefix(1));
}

// The checkpoint is damaged at the first look, intact at the second, and in some cases damaged again later.
TEST_F(ReadNewestCheckpointTest, ReadsAgainAfterTheSecondLook) {
  Save(1);
  Save(2);
  List(2, {1, 2});
  failing_ = Prefix(2);
  failures_ = 1;
  EXPECT_EQ(Read(&fs_)->value(), Prefix(2));
  EXPECT_EQ(contents_, Prefix(2));
  failures_ = 2;
  EXPECT_EQ(Read(&fs_)->value(), Prefix(1));
  EXPECT_EQ(contents_, Prefix(1));
  ASSERT_TRUE(RemoveCheckpoint(&fs_, Prefix(1)).ok());
  failures_ = 2;
  EXPECT_TRUE(absl::IsDataLoss(Read(&fs_).status())) << "there is no other";
}

TEST_F(ReadNewestCheckpointTest, EndsWithAnErrorThatIsNoDamage) {
  Save(1);
  Save(2);
  // These errors mean, for example, that the checkpoint lacks a variable. Falling back to an older checkpoint would be
  // wrong.
  for (const auto& error : {absl::NotFoundError("no variable"), absl::InvalidArgumentError("another shape")}) {
    error_ = error;
    EXPECT_EQ(Read(&fs_).status(), error);
  }
}

}  // namespace
}  // namespace lockstep
