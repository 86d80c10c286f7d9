#include "lockstep/train/evaluation/run_watcher.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A file system that calls `on_open` after it has opened a file for reading.
class WatchedFileSystem : public MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    auto file = MemoryFileSystem::NewRandomAccessFile(path);
    if (on_open) on_open(path);
    return file;
  }

  std::function<void(const std::string& path)> on_open;
};

class RunWatcherTest : public ::testing::Test {
 protected:
  RunWatcher NewWatcher(int64_t every_steps = 0, const std::string& split = "") {
    RunWatcher::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.run.logdir = "/run";
    options.every_steps = every_steps;
    options.split = split;
    options.report = [this](const std::string& split, const RunEvaluator::Evaluation& evaluation) {
      reports_.push_back(absl::StrCat(split, " ", evaluation.step, " ", evaluation.result.Find("accuracy")->value));
    };
    return RunWatcher(options);
  }
  // Returns "tag step value" for each scalar in /run/eval.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const std::vector<std::string> names = fs_.ListDirectory("/run/eval").value();
    for (const std::string& name : names) {
      auto reader = RecordReader::Open(&fs_, JoinPath("/run/eval", name));
      std::string record;
      for (uint64_t offset = 0; offset < (*reader)->size();) {
        offset = (*reader)->ReadAt(offset, &record)->next;
        v1::Event event;
        EXPECT_TRUE(event.ParseFromString(record));
        for (const auto& value : event.summary().value()) {
          events.push_back(absl::StrCat(value.tag(), " ", event.step(), " ", value.simple_value()));
        }
      }
    }
    return events;
  }

  // Calls `f` once the evaluation has read the checkpoint's index, but none of its data.
  void OnceTheIndexIsRead(std::function<void()> f) {
    fs_.on_open = [f, opened = 0](const std::string& path) mutable {
      // The first read of the index is the watcher's own.
      if (Basename(path) == "model.ckpt-3.index" && ++opened == 2) f();
    };
  }

  SimulatedClock clock_;
  WatchedFileSystem fs_;
  std::vector<std::string> reports_;
};

TEST_F(RunWatcherTest, KeepsTheSplitsApart) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(NewWatcher(0, "train").RunOnce().value(), true);
  EXPECT_FALSE(fs_.Exists("/run/eval").value());
  EXPECT_EQ(fs_.ListDirectory("/run/eval_train").value().size(), 1);
}

TEST_F(RunWatcherTest, EvaluatesCheckpointsOnceUntilTheLast) {
  RecordSignRun(&fs_, "/run");
  RunWatcher watcher = NewWatcher();
  EXPECT_EQ(watcher.RunOnce().value(), false);
  EXPECT_THAT(reports_, IsEmpty());
  SaveSignCheckpoint(&fs_, "/run", 3, -1);
  EXPECT_EQ(watcher.RunOnce().value(), false);
  EXPECT_EQ(watcher.RunOnce().value(), false);
  EXPECT_THAT(reports_, ElementsAre("test 3 0.25"));
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(watcher.RunOnce().value(), true);
  EXPECT_EQ(watcher.RunOnce().value(), true);
  EXPECT_THAT(reports_, ElementsAre("test 3 0.25", "test 10 0.75"));
  EXPECT_THAT(Events(), ElementsAre("accuracy 3 0.25", "accuracy 10 0.75"));
}

TEST_F(RunWatcherTest, WaitsForARunThatHasNotBegun) {
  RunWatcher watcher = NewWatcher();
  EXPECT_EQ(watcher.RunOnce().value(), false);
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(watcher.RunOnce().value(), true);
}

TEST_F(RunWatcherTest, SkipsCloseCheckpointsButNotTheLast) {
  RecordSignRun(&fs_, "/run");
  RunWatcher watcher = NewWatcher(5);
  for (const int64_t step : {3, 5, 9, 10}) {
    SaveSignCheckpoint(&fs_, "/run", step, 1);
    ASSERT_TRUE(watcher.RunOnce().ok());
  }
  EXPECT_THAT(reports_, ElementsAre("test 5 0.75", "test 10 0.75"));
}

TEST_F(RunWatcherTest, FailsForADamagedCheckpoint) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  std::string data = ReadFile(&fs_, "/run/model.ckpt-10.data-00000-of-00001").value();
  data[5] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/model.ckpt-10.data-00000-of-00001", data).ok());
  EXPECT_EQ(NewWatcher().RunOnce().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RunWatcherTest, TakesAReplacedCheckpointAtNextLook) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 3, -1);
  RunWatcher watcher = NewWatcher();
  OnceTheIndexIsRead([this] { SaveSignCheckpoint(&fs_, "/run", 3, 1); });
  EXPECT_EQ(watcher.RunOnce().value(), false);
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_EQ(watcher.RunOnce().value(), false);
  EXPECT_THAT(reports_, ElementsAre("test 3 0.75"));
}

TEST_F(RunWatcherTest, PassesOverACheckpointThatIsDeletedMeanwhile) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 3, -1);
  RunWatcher watcher = NewWatcher();
  OnceTheIndexIsRead([this] {
    ASSERT_TRUE(fs_.Remove("/run/model.ckpt-3.index").ok());
    ASSERT_TRUE(fs_.Remove("/run/model.ckpt-3.data-00000-of-00001").ok());
  });
  EXPECT_EQ(watcher.RunOnce().value(), false);
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(watcher.RunOnce().value(), true);
  EXPECT_THAT(reports_, ElementsAre("test 10 0.75"));
}

TEST_F(RunWatcherTest, GoesOnAfterADamagedCheckpoint) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  fs_.FlipBits("/run/model.ckpt-3.data-00000-of-00001", 5, 1);
  RunWatcher watcher = NewWatcher();
  EXPECT_EQ(watcher.RunOnce().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(watcher.RunOnce().value(), false);
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(watcher.RunOnce().value(), true);
  EXPECT_THAT(reports_, ElementsAre("test 10 0.75"));
}

TEST_F(RunWatcherTest, FailsForASplitThatTheRunLacks) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  RunWatcher::Options options;
  options.fs = &fs_;
  options.clock = &clock_;
  options.run.logdir = "/run";
  options.split = "dev";
  EXPECT_EQ(RunWatcher(options).RunOnce().status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
