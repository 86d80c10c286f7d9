#include "lockstep/server/chief/checkpoint/checkpoint_manager.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Operation = FaultyFileSystem::Operation;

class CheckpointManagerTest : public ::testing::Test {
 protected:
  CheckpointManagerTest() { EXPECT_TRUE(memory_.CreateDirectory("d").ok()); }

  std::unique_ptr<CheckpointManager> Create(int64_t max_to_keep) {
    auto manager = CheckpointManager::Create(&fs_, {"d", "model.ckpt", max_to_keep});
    EXPECT_TRUE(manager.ok()) << manager.status();
    return *std::move(manager);
  }
  void Touch(const std::string& path) { ASSERT_TRUE(WriteFileAtomically(&memory_, path, "").ok()); }
  absl::Status Save(CheckpointManager* manager, int64_t step) {
    const std::string prefix = manager->PrefixOf(step);
    for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"}) Touch(prefix + suffix);
    return manager->Record(prefix);
  }
  // Returns the steps that have an index file; checks that their other files exist too.
  std::vector<int64_t> OnDisk() {
    std::vector<int64_t> steps;
    int files = 0;
    const std::vector<std::string> names = memory_.ListDirectory("d").value();
    for (const std::string& name : names) {
      if (name == "checkpoint") continue;
      ++files;
      if (absl::EndsWith(name, ".index")) steps.push_back(*StepOfCheckpoint(name.substr(0, name.size() - 6)));
    }
    EXPECT_EQ(files, static_cast<int>(3 * steps.size())) << "only index, data and meta of each";
    std::sort(steps.begin(), steps.end());
    return steps;
  }
  std::vector<int64_t> StepsOf(const CheckpointManager& manager) {
    std::vector<int64_t> steps;
    for (const std::string& prefix : manager.checkpoints()) steps.push_back(*StepOfCheckpoint(prefix));
    return steps;
  }
  std::vector<int64_t> Listed() {
    std::vector<int64_t> steps;
    const v1::CheckpointState state = ReadCheckpointState(&memory_, "d").value().value();
    for (const std::string& prefix : state.all_model_checkpoint_paths()) steps.push_back(*StepOfCheckpoint(prefix));
    EXPECT_EQ(steps.back(), *StepOfCheckpoint(state.model_checkpoint_path()));
    return steps;
  }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
};

// SAVE-01, SAVE-02, SAVE-03
TEST_F(CheckpointManagerTest, KeepsTheNewestAndMovesARepeatedOneToTheEnd) {
  const auto manager = Create(2);
  EXPECT_EQ(manager->PrefixOf(3), "d/model.ckpt-3");
  for (const int step : {1, 2, 3}) ASSERT_TRUE(Save(manager.get(), step).ok());
  EXPECT_THAT(StepsOf(*manager), ElementsAre(2, 3));
  EXPECT_THAT(OnDisk(), ElementsAre(2, 3));
  EXPECT_THAT(Listed(), ElementsAre(2, 3));

  // A run that was started from an older checkpoint saves that step again.
  const auto second = Create(2);
  ASSERT_TRUE(Save(second.get(), 2).ok());
  EXPECT_THAT(StepsOf(*second), ElementsAre(3, 2));
  EXPECT_THAT(OnDisk(), ElementsAre(2, 3));
  EXPECT_THAT(Listed(), ElementsAre(3, 2));

  const auto third = Create(2);
  ASSERT_TRUE(Save(third.get(), 1).ok());
  EXPECT_THAT(StepsOf(*third), ElementsAre(2, 1));
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2));
}

// A quadratic comparison would take minutes and exceed the test's timeout.
TEST_F(CheckpointManagerTest, TakesALongListOverInLinearTime) {
  constexpr int kCheckpoints = 200000;
  std::string list = absl::StrCat("model_checkpoint_path: \"model.ckpt-", kCheckpoints, "\"\n");
  for (const int first : {1, 2}) {
    for (int step = first; step <= kCheckpoints; step += 2) {
      ASSERT_TRUE(memory_.NewWritableFile(absl::StrCat("d/model.ckpt-", step, ".index")).ok());
      absl::StrAppend(&list, "all_model_checkpoint_paths: \"model.ckpt-", step, "\"\n");
    }
  }
  ASSERT_TRUE(WriteFileAtomically(&memory_, "d/checkpoint", list).ok());
  const auto manager = Create(kCheckpoints);
  EXPECT_EQ(manager->checkpoints().size(), kCheckpoints);
  EXPECT_EQ(manager->checkpoints().front(), "d/model.ckpt-1");
  EXPECT_EQ(manager->checkpoints().back(), absl::StrCat("d/model.ckpt-", kCheckpoints));
}

TEST_F(CheckpointManagerTest, OfAnEntryThatIsListedTwiceTheLaterCounts) {
  for (const int step : {1, 2, 3}) Touch(absl::StrCat("d/model.ckpt-", step, ".index"));
  std::string list = "model_checkpoint_path: \"model.ckpt-1\"\n";
  for (const int step : {1, 2, 3, 1}) {
    absl::StrAppend(&list, "all_model_checkpoint_paths: \"model.ckpt-", step, "\"\n");
  }
  ASSERT_TRUE(WriteFileAtomically(&memory_, "d/checkpoint", list).ok());
  EXPECT_THAT(StepsOf(*Create(3)), ElementsAre(2, 3, 1));
}

// Two saves finish in the reverse order of their steps.
TEST_F(CheckpointManagerTest, TheNewestOfARunNeverGoesBack) {
  const auto manager = Create(3);
  for (const int step : {1, 5, 4}) ASSERT_TRUE(Save(manager.get(), step).ok());
  EXPECT_THAT(Listed(), ElementsAre(1, 4, 5));
  for (const int step : {5, 2}) ASSERT_TRUE(Save(manager.get(), step).ok());
  EXPECT_THAT(Listed(), ElementsAre(4, 2, 5));
  EXPECT_EQ(LatestCheckpoint(&memory_, "d").value(), std::string("d/model.ckpt-5"));
  EXPECT_THAT(OnDisk(), ElementsAre(2, 4, 5));

  const auto only = Create(1);
  for (const int step : {7, 6}) ASSERT_TRUE(Save(only.get(), step).ok());
  EXPECT_THAT(Listed(), ElementsAre(7));
  EXPECT_THAT(OnDisk(), ElementsAre(7));

  const auto all = Create(0);
  for (const int step : {9, 8}) ASSERT_TRUE(Save(all.get(), step).ok());
  EXPECT_THAT(Listed(), ElementsAre(9));
}

TEST_F(CheckpointManagerTest, WritesAndDeletesNothingWhenItMayNot) {
  bool mine = true;
  const auto manager =
      CheckpointManager::Create(
          &fs_, {"d", "model.ckpt", 1,
                 [&mine] { return mine ? absl::OkStatus() : absl::FailedPreconditionError("taken over"); }})
          .value();
  ASSERT_TRUE(Save(manager.get(), 1).ok());
  mine = false;
  EXPECT_EQ(Save(manager.get(), 2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Listed(), ElementsAre(1));
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2));
  EXPECT_THAT(StepsOf(*manager), ElementsAre(1));
}

// SAVE-06
TEST_F(CheckpointManagerTest, KeepsAllAndListsTheNewestWithoutALimit) {
  const auto manager = Create(0);
  for (const int step : {1, 2}) ASSERT_TRUE(Save(manager.get(), step).ok());
  EXPECT_THAT(StepsOf(*manager), IsEmpty());
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2));
  EXPECT_THAT(Listed(), ElementsAre(2));
  EXPECT_THAT(StepsOf(*Create(0)), IsEmpty());
}

// Saves once an hour for a day, with a restart after the seventh save.
TEST_F(CheckpointManagerTest, KeepsOneOfEachPeriodThroughRestarts) {
  SimulatedClock clock;
  CheckpointManager::Options options;
  options.directory = "d";
  options.max_to_keep = 2;
  options.keep_every = absl::Hours(4);
  options.clock = &clock;
  for (const std::vector<int64_t>& life : {std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12}}) {
    const auto manager = CheckpointManager::Create(&fs_, options).value();
    for (const int64_t hour : life) {
      clock.Advance(absl::Hours(1));
      ASSERT_TRUE(Save(manager.get(), hour).ok());
    }
  }
  EXPECT_THAT(OnDisk(), ElementsAre(4, 8, 11, 12));
  EXPECT_THAT(Listed(), ElementsAre(11, 12)) << "those that stay are not listed";
  EXPECT_EQ(ReadCheckpointState(&memory_, "d").value()->all_model_checkpoint_timestamps_size(), 2);
  // Setting the clock back causes no additional deletions.
  clock.SetWallClock(-absl::Hours(100));
  const auto manager = CheckpointManager::Create(&fs_, options).value();
  for (const int64_t hour : {13, 14, 15}) ASSERT_TRUE(Save(manager.get(), hour).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(4, 8, 14, 15));
}

// SAVE-09
TEST_F(CheckpointManagerTest, TakesTheListOverFromTheStateFile) {
  const auto first = Create(3);
  for (const int step : {1, 2, 3}) ASSERT_TRUE(Save(first.get(), step).ok());
  EXPECT_THAT(StepsOf(*Create(3)), ElementsAre(1, 2, 3));
}

// SAVE-10
TEST_F(CheckpointManagerTest, TakesOverOnlyWhatIsStillThere) {
  const auto first = Create(3);
  for (const int step : {1, 2, 3}) ASSERT_TRUE(Save(first.get(), step).ok());
  ASSERT_TRUE(RemoveCheckpoint(&memory_, "d/model.ckpt-1").ok());
  const auto second = Create(3);
  EXPECT_THAT(StepsOf(*second), ElementsAre(2, 3));
  ASSERT_TRUE(Save(second.get(), 4).ok());
  EXPECT_THAT(Listed(), ElementsAre(2, 3, 4));
}

// SAVE-34
TEST_F(CheckpointManagerTest, DeletesTheFirstOfFour) {
  const auto manager = Create(3);
  for (const int step : {1, 2, 3, 4}) ASSERT_TRUE(Save(manager.get(), step).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(2, 3, 4));
}

// SM-22
TEST_F(CheckpointManagerTest, GoesOnWithTheListAfterARestart) {
  const auto first = Create(5);
  for (const int step : {50, 100}) ASSERT_TRUE(Save(first.get(), step).ok());
  const auto second = Create(5);
  ASSERT_TRUE(Save(second.get(), 110).ok());
  EXPECT_THAT(Listed(), ElementsAre(50, 100, 110));
}

// TensorFlow deletes at most one checkpoint per save.
TEST_F(CheckpointManagerTest, DeletesAllThatAreTooManyAtTheNextSave) {
  const auto first = Create(5);
  for (const int step : {1, 2, 3, 4, 5}) ASSERT_TRUE(Save(first.get(), step).ok());
  const auto second = Create(2);
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2, 3, 4, 5));
  ASSERT_TRUE(Save(second.get(), 6).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(5, 6));
  EXPECT_THAT(Listed(), ElementsAre(5, 6));
}

TEST_F(CheckpointManagerTest, DeletesNothingBeforeTheStateFileIsWritten) {
  const auto manager = Create(1);
  ASSERT_TRUE(Save(manager.get(), 1).ok());
  fs_.FailOperation(2, absl::ResourceExhaustedError("full"));  // The first checks the index.
  EXPECT_EQ(Save(manager.get(), 2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2));
  EXPECT_THAT(Listed(), ElementsAre(1));
  ASSERT_TRUE(Save(manager.get(), 3).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(3));
}

TEST_F(CheckpointManagerTest, TriesAFailedDeletionAgain) {
  const auto manager = Create(1);
  ASSERT_TRUE(Save(manager.get(), 1).ok());
  const int64_t before = fs_.operations();
  ASSERT_TRUE(Save(manager.get(), 2).ok());
  const int64_t operations = fs_.operations() - before;
  for (int64_t n = 8; n <= operations; ++n) {  // The first 7 check the index and write the state file.
    fs_.FailOperation(n, absl::PermissionDeniedError("read-only"));
    EXPECT_TRUE(Save(manager.get(), 10 * n).ok());
    EXPECT_TRUE(Save(manager.get(), 10 * n + 1).ok());
    EXPECT_THAT(OnDisk(), ElementsAre(10 * n + 1));
  }
}

// A checkpoint that is due for deletion stays if it is written again.
TEST_F(CheckpointManagerTest, KeepsADoomedOneThatIsSavedAgain) {
  const auto manager = Create(2);
  for (const int step : {1, 2}) ASSERT_TRUE(Save(manager.get(), step).ok());
  fs_.FailOperation(8, absl::PermissionDeniedError("read-only"));
  ASSERT_TRUE(Save(manager.get(), 3).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(1, 2, 3));
  ASSERT_TRUE(Save(manager.get(), 1).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(1, 3));
}

TEST_F(CheckpointManagerTest, DeletesNothingInAnotherDirectory) {
  ASSERT_TRUE(memory_.CreateDirectory("/other").ok());
  Touch("/other/model.ckpt-7.index");
  ASSERT_TRUE(WriteCheckpointState(&memory_, "d", "/other/model.ckpt-7", {}).ok());
  const auto manager = Create(1);
  EXPECT_THAT(StepsOf(*manager), IsEmpty());
  ASSERT_TRUE(Save(manager.get(), 8).ok());
  ASSERT_TRUE(Save(manager.get(), 9).ok());
  EXPECT_TRUE(memory_.Exists("/other/model.ckpt-7.index").value());
}

// Supervisor wrote full paths. Since then, the directory has been moved, or its path is spelled differently.
TEST_F(CheckpointManagerTest, RecognizesItsOwnUnderAnotherSpelling) {
  const auto first = Create(2);
  ASSERT_TRUE(Save(first.get(), 1).ok());
  ASSERT_TRUE(WriteCheckpointState(&memory_, "d", "/home/me/d/model.ckpt-1", {}).ok());
  const auto manager = Create(2);
  EXPECT_THAT(StepsOf(*manager), ElementsAre(1));
  ASSERT_TRUE(Save(manager.get(), 1).ok());
  EXPECT_THAT(Listed(), ElementsAre(1));
}

TEST_F(CheckpointManagerTest, ListsWhatTheRunStartsFromIfNobodyHas) {
  ASSERT_TRUE(Save(Create(2).get(), 5).ok());
  const auto write = [&](int64_t step) {
    for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"}) {
      Touch(absl::StrCat("d/model.ckpt-", step, suffix));
    }
  };
  // The writer died before listing the checkpoint, whose name may not be durable.
  write(7);
  const auto manager = Create(2);
  ASSERT_TRUE(manager->Adopt("d/model.ckpt-7").ok());
  EXPECT_THAT(Listed(), ElementsAre(5, 7));
  memory_.DropUnsyncedData();
  EXPECT_THAT(OnDisk(), ElementsAre(5, 7));
  // An older checkpoint, chosen by the user or used because a newer one is damaged, stays where it is in the list.
  ASSERT_TRUE(Create(2)->Adopt("d/model.ckpt-5").ok());
  EXPECT_THAT(Listed(), ElementsAre(5, 7));
  ASSERT_TRUE(memory_.Remove("d/checkpoint").ok());
  ASSERT_TRUE(Create(2)->Adopt("d/model.ckpt-5").ok());
  EXPECT_THAT(Listed(), ElementsAre(5)) << "there is no list";
}

TEST_F(CheckpointManagerTest, RemovesWhatADeadWriterLeft) {
  const auto first = Create(2);
  ASSERT_TRUE(Save(first.get(), 1).ok());
  for (const char* name : {"model.ckpt-2.data-00000-of-00001", "model.ckpt-2.index.tmp",
                           "model.ckpt-3.data-00000-of-00001.tmp", "model.ckpt-1.data-00000-of-00002.tmp"}) {
    Touch(JoinPath("d", name));
  }
  const char* const others[] = {
      "notes.tmp",         "best-2.data-00000-of-00001", "model.ckpt-x.index.tmp", "model.ckpt-02.data-00000-of-00001",
      "model.ckpt-4.meta", "model.ckpt-5.data"};
  for (const char* name : others) Touch(JoinPath("d", name));
  Create(2);
  for (const char* name : others) {
    EXPECT_TRUE(memory_.Exists(JoinPath("d", name)).value()) << name;
    ASSERT_TRUE(memory_.Remove(JoinPath("d", name)).ok());
  }
  EXPECT_THAT(OnDisk(), ElementsAre(1));
}

// If the disk or a network file system does not answer, the manager cannot know which files exist.
TEST_F(CheckpointManagerTest, RemovesAndForgetsNothingWhenItCannotSee) {
  const auto first = Create(3);
  for (const int step : {1, 2, 3}) ASSERT_TRUE(Save(first.get(), step).ok());
  const absl::Status error = absl::InternalError("Input/output error");
  for (const auto operation : {Operation::kExists, Operation::kList, Operation::kOpen, Operation::kRead}) {
    fs_.FailMatching(operation, "d", error);
    const auto manager = CheckpointManager::Create(&fs_, {"d", "model.ckpt", 3});
    if (manager.ok()) {
      EXPECT_THAT(StepsOf(**manager), ElementsAre(1, 2, 3));
    } else {
      EXPECT_EQ(manager.status().code(), error.code());
    }
    EXPECT_THAT(OnDisk(), ElementsAre(1, 2, 3));
    fs_.Heal();
  }
  fs_.FailMatching(Operation::kExists, ".index", error);
  EXPECT_EQ(Save(first.get(), 4).code(), error.code());
  EXPECT_THAT(Listed(), ElementsAre(1, 2, 3));
  fs_.Heal();
  ASSERT_TRUE(Save(Create(3).get(), 4).ok());
  EXPECT_THAT(OnDisk(), ElementsAre(2, 3, 4));
}

TEST_F(CheckpointManagerTest, KeepsDataWhoseIndexIsNotVisible) {
  ASSERT_TRUE(Save(Create(2).get(), 1).ok());
  ASSERT_TRUE(memory_.Rename("d/model.ckpt-1.index", "d/away").ok());
  EXPECT_THAT(StepsOf(*Create(2)), IsEmpty());
  ASSERT_TRUE(memory_.Rename("d/away", "d/model.ckpt-1.index").ok());
  EXPECT_THAT(OnDisk(), ElementsAre(1));
}

TEST_F(CheckpointManagerTest, RefusesWhatItCannotDo) {
  EXPECT_EQ(CheckpointManager::Create(&fs_, {"d", "model.ckpt", -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Create(1)->Record("d/model.ckpt-1").code(), absl::StatusCode::kNotFound);
  Touch("d/checkpoint");
  EXPECT_EQ(CheckpointManager::Create(&fs_, {"d", "model.ckpt", 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The state file names a checkpoint that a user's Saver wrote before the run began.
TEST_F(CheckpointManagerTest, NeitherListsNorDeletesWhatASaverWrote) {
  BundleWriterOptions options;
  options.written_by_saver = true;
  for (const char* prefix : {"d/mine-7", "d/mine-8"}) {
    auto writer = BundleWriter::Create(&memory_, prefix, options).value();
    ASSERT_TRUE(writer->Add("v", v1::DT_UINT8, {1}, "x").ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  ASSERT_TRUE(WriteCheckpointState(&memory_, "d", "d/mine-8", {"d/mine-7", "d/mine-8"}).ok());
  const auto manager = Create(1);
  EXPECT_THAT(manager->checkpoints(), IsEmpty());
  Touch("d/model.ckpt-1.index");
  ASSERT_TRUE(manager->Adopt("d/model.ckpt-1").ok()) << "is listed, though the state file names a later step";
  EXPECT_THAT(Listed(), ElementsAre(1));
  ASSERT_TRUE(Save(manager.get(), 2).ok());
  ASSERT_TRUE(Save(manager.get(), 3).ok());
  EXPECT_THAT(Listed(), ElementsAre(3));
  for (const char* prefix : {"d/mine-7", "d/mine-8"}) EXPECT_TRUE(CheckpointExists(&memory_, prefix).value());
}

}  // namespace
}  // namespace lockstep
