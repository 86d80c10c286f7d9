// Kills a run at every operation on files, and shows that it can always be restored.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/bundle_writer.h"
#include "common/checkpoint/checkpoint_manager.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/checkpoint/latest_valid.h"
#include "common/io/faulty_file_system.h"
#include "common/io/memory_file_system.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using UnsyncedNames = MemoryFileSystem::UnsyncedNames;

constexpr int64_t kNoStep = -1;

enum class Crash { kKill, kPowerCutLosesNames, kPowerCutKeepsNames, kPowerCutKeepsLastName };

// What a chief does with files: find the newest checkpoint, go on from it, save and list.
class FakeChief {
 public:
  FakeChief(FileSystem* fs, int64_t max_to_keep) : fs_(fs), max_to_keep_(max_to_keep) {}

  // The step to go on from; kNoStep for a new run. Damaged checkpoints are failures: nothing damages here.
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
    absl::Status status = (*writer)->Add("weights", DT_UINT8, {100}, weights);
    const absl::string_view step_bytes(reinterpret_cast<const char*>(&step), sizeof(step));
    if (status.ok()) status = (*writer)->Add("global_step", DT_INT64, {}, step_bytes);
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
  // Saved one after the other; each operation from the first one on is a place to crash.
  std::vector<int64_t> steps;
  Crash crash;
};

class CrashTest : public ::testing::TestWithParam<Case> {
 protected:
  // Runs until the n-th operation; the last step that Save had answered for, or kNoStep.
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
    // What was answered for is there, or something newer.
    const auto& steps = GetParam().steps;
    const auto position = [&](int64_t step) { return std::find(steps.begin(), steps.end(), step) - steps.begin(); };
    if (saved != kNoStep) {
      ASSERT_NE(*start, kNoStep);
      EXPECT_GE(position(*start), position(saved));
    }

    // And the run goes on: it saves, and leaves nothing half-written behind.
    ASSERT_TRUE(second.Save(1000).ok());
    EXPECT_EQ(FakeChief(&memory, GetParam().max_to_keep).Start().value(), 1000);
    int64_t checkpoints = 0;
    const std::vector<std::string> names = memory.ListDirectory("d").value();
    for (const std::string& name : names) {
      EXPECT_FALSE(absl::EndsWith(name, ".tmp") && name != "checkpoint.tmp") << name;
      checkpoints += absl::EndsWith(name, ".index");
    }
    // One may have been written and not listed, or no longer listed and not deleted.
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

// An error at any operation, as from a bad disk, fails that save at most; the process lives and goes on.
TEST(FailingSaveTest, LosesAtMostThatSave) {
  bool failed = true;
  for (int64_t n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n, " fails"));
    MemoryFileSystem memory;
    ASSERT_TRUE(memory.CreateDirectory("d").ok());
    FaultyFileSystem fs(&memory);
    FakeChief chief(&fs, 1);
    ASSERT_TRUE(chief.Start().ok());
    ASSERT_TRUE(chief.Save(10).ok());
    const int64_t before = fs.operations();
    fs.FailOperation(n, absl::ResourceExhaustedError("no space"));
    const bool saved = chief.Save(20).ok();
    failed = fs.operations() - before >= n;
    const int64_t restored = FakeChief(&memory, 1).Start().value();
    EXPECT_TRUE(restored == 20 || (!saved && restored == 10)) << restored;
    fs.Heal();
    ASSERT_TRUE(chief.Save(30).ok());
    EXPECT_EQ(FakeChief(&memory, 1).Start().value(), 30);
    ASSERT_LT(n, 1000);
  }
}

}  // namespace
}  // namespace lockstep
