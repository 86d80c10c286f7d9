// Kills a run at every file operation, and checks that it can always be restored.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/checkpoint/checkpoint_manager.h"

namespace lockstep {
namespace {

using UnsyncedNames = MemoryFileSystem::UnsyncedNames;

constexpr int64_t kNoStep = -1;

enum class Crash { kKill, kPowerCutLosesNames, kPowerCutKeepsNames, kPowerCutKeepsLastName };

// Performs a chief's file operations: finds the newest checkpoint, resumes from it, and saves and lists checkpoints.
class FakeChief {
 public:
  FakeChief(FileSystem* fs, int64_t max_to_keep) : fs_(fs), max_to_keep_(max_to_keep) {}

  // Returns the step to resume from, or kNoStep for a new run. A damaged checkpoint fails the test, because this test
  // does not damage any.
  absl::StatusOr<int64_t> Start() {
    const auto prefix = NewestValidCheckpoint(fs_, "d", [](const std::string& name, const absl::Status& damage) {
      ADD_FAILURE() << name << " is damaged: " << damage;
    });
    if (!prefix.ok()) return prefix.status();
    auto manager = CheckpointManager::Create(fs_, {"d", "model.ckpt", max_to_keep_});
    if (!manager.ok()) return manager.status();
    manager_ = *std::move(manager);
    if (!prefix->has_value()) return kNoStep;
    auto reader = BundleReader::Open(fs_, **prefix);
    if (!reader.ok()) return reader.status();
    const auto step = (*reader)->Read("global_step");
    if (!step.ok()) return step.status();
    EXPECT_EQ(step->flat<int64_t>()[0], *StepOfCheckpoint(**prefix));
    return step->flat<int64_t>()[0];
  }

  absl::Status Save(int64_t step) {
    const std::string prefix = manager_->PrefixOf(step);
    auto writer = BundleWriter::Create(fs_, prefix);
    if (!writer.ok()) return writer.status();
    const std::string weights(100, 'w');
    absl::Status status = (*writer)->Add("weights", v1::DT_UINT8, {100}, weights);
    const absl::string_view step_bytes(reinterpret_cast<const char*>(&step), sizeof(step));
    if (status.ok()) status = (*writer)->Add("global_step", v1::DT_INT64, {}, step_bytes);
    if (status.ok()) status = (*writer)->Finish();
    if (status.ok()) status = manager_->Record(prefix);
    return status;
  }

 private:
  FileSystem* const fs_;
  const int64_t max_to_keep_;
  std::unique_ptr<CheckpointManager> manager_;
};

struct Case {
  int64_t max_to_keep;
  // The steps to save, in order. The crash may happen at any file operation.
  std::vector<int64_t> steps;
  Crash crash;
};

class CrashTest : public ::testing::TestWithParam<Case> {
 protected:
  // Runs until it is killed after operation n. Returns the last step for which Save returned OK, or kNoStep.
  int64_t RunUntilKilled(int64_t n, MemoryFileSystem* memory, bool* killed) {
    FaultyFileSystem fs(memory);
    fs.KillAfter(n);
    FakeChief chief(&fs, GetParam().max_to_keep);
    int64_t saved = kNoStep;
    *killed = false;
    if (chief.Start().ok()) {
      for (const int64_t step : GetParam().steps) {
        if (chief.Save(step).ok()) saved = step;
      }
    }
    *killed = fs.operations() > n;
    return saved;
  }
};

TEST_P(CrashTest, LeavesARestorableRunAtEveryOperation) {
  bool killed = true;
  for (int64_t n = 0; killed; ++n) {
    SCOPED_TRACE(absl::StrCat("killed after operation ", n));
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    const int64_t saved = RunUntilKilled(n, &memory, &killed);
    if (GetParam().crash == Crash::kPowerCutLosesNames) memory.DropUnsyncedData(UnsyncedNames::kLost);
    if (GetParam().crash == Crash::kPowerCutKeepsNames) memory.DropUnsyncedData(UnsyncedNames::kKept);
    if (GetParam().crash == Crash::kPowerCutKeepsLastName) memory.DropUnsyncedData(UnsyncedNames::kOnlyLastKept);

    FakeChief second(&memory, GetParam().max_to_keep);
    const auto start = second.Start();
    ASSERT_TRUE(start.ok()) << start.status();
    // The restored step is the last one that Save acknowledged, or a later one.
    const auto& steps = GetParam().steps;
    const auto position = [&](int64_t step) { return std::find(steps.begin(), steps.end(), step) - steps.begin(); };
    if (saved != kNoStep) {
      ASSERT_NE(*start, kNoStep);
      EXPECT_GE(position(*start), position(saved));
    }

    // The run continues: it saves, and leaves no partially written files behind.
    ASSERT_TRUE(second.Save(1000).ok());
    EXPECT_EQ(FakeChief(&memory, GetParam().max_to_keep).Start().value(), 1000);
    int64_t checkpoints = 0;
    const std::vector<std::string> names = memory.ListDirectory("d").value();
    for (const std::string& name : names) {
      EXPECT_FALSE(absl::EndsWith(name, ".tmp") && name != "checkpoint.tmp") << name;
      checkpoints += absl::EndsWith(name, ".index");
    }
    // A checkpoint may be written but not yet listed, or no longer listed but not yet deleted.
    EXPECT_LE(checkpoints, GetParam().max_to_keep + 1);
    ASSERT_LT(n, 1000);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Crash crash :
       {Crash::kKill, Crash::kPowerCutLosesNames, Crash::kPowerCutKeepsNames, Crash::kPowerCutKeepsLastName}) {
    for (const int64_t max_to_keep : {1, 2}) cases.push_back({max_to_keep, {10, 20, 30}, crash});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest, ::testing::ValuesIn(Cases()));

// Failed file operations, as caused by a bad disk or a network file system: either a single one, or all from some point
// on. They must cause nothing worse than failed saves. Afterwards the process continues, or the power is cut.
struct Failure {
  absl::Status error;
  bool lasting;
  int64_t max_to_keep;
};

class FailingSaveTest : public ::testing::TestWithParam<Failure> {
 protected:
  // Saves step 10, and then steps 20 and 30 while operation n fails. Sets `saved` to the last step for which Save
  // returned OK, and `failed` to whether an operation failed.
  std::unique_ptr<FakeChief> Run(int64_t n, FaultyFileSystem* fs, int64_t* saved, bool* failed) {
    auto chief = std::make_unique<FakeChief>(fs, GetParam().max_to_keep);
    EXPECT_TRUE(chief->Start().ok());
    EXPECT_TRUE(chief->Save(10).ok());
    const int64_t before = fs->operations();
    if (GetParam().lasting) {
      fs->FailFrom(n, GetParam().error);
    } else {
      fs->FailOperation(n, GetParam().error);
    }
    *saved = 10;
    for (const int64_t step : {20, 30}) {
      if (chief->Save(step).ok()) *saved = step;
    }
    *failed = fs->operations() - before >= n;
    fs->Heal();
    return chief;
  }
};

TEST_P(FailingSaveTest, LosesAtMostWhatFailed) {
  bool failed = true;
  for (int64_t n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n, " fails"));
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    FaultyFileSystem fs(&memory);
    int64_t saved = 0;
    const auto chief = Run(n, &fs, &saved, &failed);
    EXPECT_GE(FakeChief(&memory, GetParam().max_to_keep).Start().value(), saved);
    ASSERT_TRUE(chief->Save(40).ok());
    ASSERT_TRUE(chief->Save(50).ok());
    EXPECT_EQ(FakeChief(&memory, GetParam().max_to_keep).Start().value(), 50);
    const std::vector<std::string> names = memory.ListDirectory("d").value();
    // The state file, the index and data of the kept checkpoints, and one checkpoint that was never listed.
    EXPECT_LE(names.size(), 1 + 2 * (GetParam().max_to_keep + 1)) << absl::StrJoin(names, " ");
    ASSERT_LT(n, 1000);
  }
}

TEST_P(FailingSaveTest, LosesNoMoreWhenThePowerIsCutThen) {
  for (const UnsyncedNames names : {UnsyncedNames::kLost, UnsyncedNames::kKept, UnsyncedNames::kOnlyLastKept}) {
    bool failed = true;
    for (int64_t n = 1; failed; ++n) {
      SCOPED_TRACE(absl::StrCat("operation ", n, " fails"));
      MemoryFileSystem memory;
      ASSERT_TRUE(memory.CreateDirectory("d").ok());
      FaultyFileSystem fs(&memory);
      int64_t saved = 0;
      Run(n, &fs, &saved, &failed);
      memory.DropUnsyncedData(names);
      EXPECT_GE(FakeChief(&memory, GetParam().max_to_keep).Start().value(), saved);
      ASSERT_LT(n, 1000);
    }
  }
}

// Failures during a start never lose a checkpoint, and never make an older one the newest.
TEST_P(FailingSaveTest, LosesNothingInAStart) {
  bool failed = true;
  for (int64_t n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n, " fails"));
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    FakeChief first(&memory, 3);
    ASSERT_TRUE(first.Start().ok());
    for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(first.Save(step).ok());
    const auto before = memory.ListDirectory("d").value();
    FaultyFileSystem fs(&memory);
    if (GetParam().lasting) {
      fs.FailFrom(n, GetParam().error);
    } else {
      fs.FailOperation(n, GetParam().error);
    }
    const auto start = FakeChief(&fs, GetParam().max_to_keep).Start();
    failed = fs.operations() >= n;
    EXPECT_EQ(start.value_or(30), 30);
    EXPECT_EQ(memory.ListDirectory("d").value(), before);
    ASSERT_LT(n, 1000);
  }
}

std::vector<Failure> Failures() {
  std::vector<Failure> failures;
  for (const absl::Status& error :
       {absl::ResourceExhaustedError("No space left on device"), absl::InternalError("Input/output error")}) {
    for (const bool lasting : {false, true}) {
      for (const int64_t max_to_keep : {1, 2}) failures.push_back({error, lasting, max_to_keep});
    }
  }
  return failures;
}

INSTANTIATE_TEST_SUITE_P(All, FailingSaveTest, ::testing::ValuesIn(Failures()));

// The disk is full after `room` bytes.
TEST(FullDiskTest, LosesAtMostThatSave) {
  for (uint64_t room = 0;; ++room) {
    SCOPED_TRACE(absl::StrCat("room for ", room, " bytes"));
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    FaultyFileSystem fs(&memory);
    FakeChief chief(&fs, 1);
    ASSERT_TRUE(chief.Start().ok());
    ASSERT_TRUE(chief.Save(10).ok());
    fs.FillDiskAfter(room);
    const bool saved = chief.Save(20).ok();
    const int64_t restored = FakeChief(&memory, 1).Start().value();
    EXPECT_TRUE(restored == 20 || (!saved && restored == 10)) << restored;
    fs.Heal();
    ASSERT_TRUE(chief.Save(30).ok());
    EXPECT_EQ(FakeChief(&memory, 1).Start().value(), 30);
    if (saved) break;
    ASSERT_LT(room, 10000);
  }
}

}  // namespace
}  // namespace lockstep
