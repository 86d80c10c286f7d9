#include "lockstep/server/chief/checkpoint/checkpoint_writer.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/checkpoint/save_pace.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// A gate that blocks the checkpoint writer in its callback, between two saves.
class Gate {
 public:
  void Close() {
    MutexLock lock(&mutex_);
    open_ = false;
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.SignalAll();
  }
  // Blocks while the gate is closed.
  void Pass() {
    MutexLock lock(&mutex_);
    ++arrived_;
    changed_.SignalAll();
    while (!open_) changed_.Wait(&mutex_);
  }
  // Blocks until n calls have reached the gate.
  void AwaitArrived(int n) {
    MutexLock lock(&mutex_);
    while (arrived_ < n) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
};

class CheckpointWriterTest : public ::testing::Test, protected RunEvents {
 protected:
  void OnEvent(const RunEvent& event) override {
    {
      MutexLock lock(&mutex_);
      (event.kind == RunEvent::kSaved ? saved_ : failed_).push_back(event.step);
      prefixes_.push_back(event.text);
    }
    gate_.Pass();
  }
  // A checkpoint holds three times this many floats. With the default size it is written without a pause.
  explicit CheckpointWriterTest(int64_t elements = 1000) : elements_(elements) {
    EXPECT_TRUE(memory_.CreateDirectory("d").ok());
    v1::ModelSpec model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(variables { name: "w" dtype: DT_FLOAT trainable: true })", &model));
    model.mutable_variables(0)->add_shape(elements);
    config::v1::OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("adam {} learning_rate { initial: 1 }", &optimizer));
    store_ = VariableStore::Create(model, optimizer).value();
    store_->Initialize(1);
  }

  std::unique_ptr<CheckpointWriter> NewWriter(int64_t keep = 5) {
    CheckpointWriter::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.checkpoints.directory = "d";
    options.checkpoints.max_to_keep = keep;
    options.events = this;
    return CheckpointWriter::Create(std::move(options)).value();
  }
  // Runs one step and returns its snapshot.
  VariableStore::Snapshot NextStep() {
    store_->BeginUpdate();
    const std::vector<float> sum(elements_, 1);
    for (size_t i = 0; i < store_->layout().segments().size(); ++i) {
      store_->ApplySegment(static_cast<int>(i), sum.data(), 1);
    }
    store_->CommitUpdate({});
    return store_->TakeSnapshot();
  }
  std::vector<int64_t> saved() {
    MutexLock lock(&mutex_);
    return saved_;
  }
  std::vector<int64_t> failed() {
    MutexLock lock(&mutex_);
    return failed_;
  }
  std::vector<std::string> Listed() {
    const auto state = ReadCheckpointState(&memory_, "d").value().value();
    return {state.all_model_checkpoint_paths().begin(), state.all_model_checkpoint_paths().end()};
  }

  const int64_t elements_;
  SimulatedClock clock_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  std::unique_ptr<VariableStore> store_;
  Gate gate_;
  Mutex mutex_;
  std::vector<int64_t> saved_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> prefixes_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(CheckpointWriterTest, ASnapshotBecomesACheckpointThatRestores) {
  const auto checkpoint_writer = NewWriter();
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok()) << "nothing was requested";
  checkpoint_writer->Save(NextStep());
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_EQ(LatestCheckpoint(&memory_, "d").value(), std::string("d/model.ckpt-1"));
  const auto reader = BundleReader::Open(&memory_, "d/model.ckpt-1").value();
  EXPECT_TRUE(reader->Verify().ok());
  EXPECT_EQ(reader->Read("global_step")->flat<int64_t>()[0], 1);
  EXPECT_THAT(reader->names(), ElementsAre("beta1_power", "beta2_power", "global_step", "w", "w/Adam", "w/Adam_1"));
}

TEST_F(CheckpointWriterTest, ANewerSnapshotTakesThePlaceOfOneThatWaits) {
  const auto checkpoint_writer = NewWriter();
  gate_.Close();
  checkpoint_writer->Save(NextStep());
  gate_.AwaitArrived(1);
  for (int i = 0; i < 3; ++i) checkpoint_writer->Save(NextStep());
  gate_.Open();
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 4));
}

TEST_F(CheckpointWriterTest, TheStepThatIsBeingWrittenIsNotWrittenTwice) {
  const auto checkpoint_writer = NewWriter();
  gate_.Close();
  const VariableStore::Snapshot snapshot = NextStep();
  checkpoint_writer->Save(snapshot);
  gate_.AwaitArrived(1);
  checkpoint_writer->Save(snapshot);
  gate_.Open();
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
}

TEST_F(CheckpointWriterTest, FullDiskIsReportedAndKeepsTheLast) {
  const auto checkpoint_writer = NewWriter();
  checkpoint_writer->Save(NextStep());
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  for (const uint64_t room : {0, 100, 5000, 11000, 12100}) {
    fs_.FillDiskAfter(room);
    checkpoint_writer->Save(NextStep());
    const absl::Status status = checkpoint_writer->WaitUntilIdle();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << room << ": " << status;
    EXPECT_EQ(LatestCheckpoint(&memory_, "d").value(), std::string("d/model.ckpt-1"));
    EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
  }
  EXPECT_EQ(failed().size(), 5u);
  fs_.Heal();
  checkpoint_writer->Save(NextStep());
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 7));
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-1", "d/model.ckpt-7"));
}

// SAVE-01
TEST_F(CheckpointWriterTest, KeepsTheNewestFew) {
  const auto checkpoint_writer = NewWriter(/*keep=*/2);
  for (int i = 0; i < 4; ++i) {
    checkpoint_writer->Save(NextStep());
    ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  }
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-3", "d/model.ckpt-4"));
  EXPECT_THAT(memory_.ListDirectory("d").value(),
              ElementsAre("checkpoint", "model.ckpt-3.data-00000-of-00001", "model.ckpt-3.index",
                          "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index"));
}

TEST_F(CheckpointWriterTest, AnOlderSnapshotNeverReplacesANewer) {
  const auto checkpoint_writer = NewWriter();
  const VariableStore::Snapshot first = NextStep(), second = NextStep(), third = NextStep();
  gate_.Close();
  checkpoint_writer->Save(first);
  gate_.AwaitArrived(1);
  checkpoint_writer->Save(third);
  checkpoint_writer->Save(second);
  checkpoint_writer->SaveAtOnce(second);
  gate_.Open();
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  checkpoint_writer->Save(second);
  checkpoint_writer->SaveAtOnce(third);
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-1", "d/model.ckpt-3"));
}

TEST_F(CheckpointWriterTest, TrainingGoesOnWhileASnapshotWaits) {
  const auto checkpoint_writer = NewWriter();
  gate_.Close();
  checkpoint_writer->Save(NextStep());
  gate_.AwaitArrived(1);
  checkpoint_writer->Save(NextStep());
  const float before = store_->values()->as<float>()[0];
  for (int i = 0; i < 3; ++i) NextStep();
  EXPECT_NE(store_->values()->as<float>()[0], before);
  gate_.Open();
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  const auto reader = BundleReader::Open(&memory_, "d/model.ckpt-2").value();
  EXPECT_EQ(reader->Read("w")->flat<float>()[0], before);
}

TEST_F(CheckpointWriterTest, TheEndWritesWhatWaits) {
  auto checkpoint_writer = NewWriter();
  gate_.Close();
  checkpoint_writer->Save(NextStep());
  gate_.AwaitArrived(1);
  checkpoint_writer->Save(NextStep());
  std::thread opener([this] { gate_.Open(); });
  checkpoint_writer.reset();
  opener.join();
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(CheckpointWriterTest, ABadStateFileIsAnError) {
  ASSERT_TRUE(WriteFileAtomically(&memory_, "d/checkpoint", "not a state file {").ok());
  CheckpointWriter::Options options;
  options.fs = &memory_;
  options.clock = &clock_;
  options.checkpoints.directory = "d";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointWriter::Create(std::move(options)).status()));
}

// A checkpoint takes 12 MiB and a few bytes. Each of its 13 pieces, except the first, waits for its turn.
class PacedCheckpointWriterTest : public CheckpointWriterTest {
 protected:
  PacedCheckpointWriterTest() : CheckpointWriterTest(/*elements=*/1 << 20) {}

  static constexpr int kPieces = 13;
  const absl::Duration per_piece_ = absl::Seconds(SavePace::kPieceBytes / SavePace::kBytesPerSecond);

  void Save(CheckpointWriter* checkpoint_writer) {
    VariableStore::Snapshot snapshot = NextStep();
    operations_before_ = fs_.operations();
    checkpoint_writer->Save(std::move(snapshot));
  }
  // Blocks until the checkpoint writer pauses.
  void AwaitPause() { clock_.AwaitWaiters(1); }
  // Returns the number of pieces written since the first checkpoint was passed to Save.
  int64_t PiecesWritten() {
    constexpr int64_t kCreate = 2;  // checks for a checkpoint to replace, creates the data file
    return fs_.operations() - operations_before_ - kCreate;
  }

 private:
  int64_t operations_before_ = 0;
};

TEST_F(PacedCheckpointWriterTest, WritesPieceByPiece) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  for (int written = 1; written < kPieces; ++written) {
    AwaitPause();
    EXPECT_EQ(PiecesWritten(), written);
    EXPECT_THAT(saved(), ElementsAre());
    clock_.Advance(per_piece_);
  }
  gate_.AwaitArrived(1);
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
}

TEST_F(PacedCheckpointWriterTest, ACallerWhoWaitsWritesAtOnce) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  AwaitPause();
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_THAT(failed(), ElementsAre()) << "the restart is not reported";
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
  Save(checkpoint_writer.get());
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok()) << "the next save does not pause either";
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(PacedCheckpointWriterTest, WhatIsSavedAtOnceHasNoPauses) {
  const auto checkpoint_writer = NewWriter();
  checkpoint_writer->SaveAtOnce(NextStep());
  gate_.AwaitArrived(1);
  EXPECT_THAT(saved(), ElementsAre(1));
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  Save(checkpoint_writer.get());
  AwaitPause();
  checkpoint_writer->SaveAtOnce(NextStep());
  gate_.AwaitArrived(2);
  EXPECT_THAT(saved(), ElementsAre(1, 3)) << "the save that had begun is already complete";
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  clock_.Advance(absl::Hours(1));
  Save(checkpoint_writer.get());
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 1) << "the next one has its pauses again";
}

TEST_F(PacedCheckpointWriterTest, TheStepThatIsBeingWrittenIsBegunAgainAtOnce) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  AwaitPause();
  checkpoint_writer->SaveAtOnce(store_->TakeSnapshot());
  gate_.AwaitArrived(1);
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1)) << "and only once";
  EXPECT_THAT(failed(), ElementsAre());
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
}

TEST_F(PacedCheckpointWriterTest, ACallerMayComeAfterANewerSnapshot) {
  const auto checkpoint_writer = NewWriter();
  gate_.Close();
  Save(checkpoint_writer.get());
  AwaitPause();
  Save(checkpoint_writer.get());
  gate_.AwaitArrived(1);
  Save(checkpoint_writer.get());
  gate_.Open();
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
}

TEST_F(PacedCheckpointWriterTest, PausesAgainAfterACallerHasWaited) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  clock_.Advance(absl::Hours(1));
  Save(checkpoint_writer.get());
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 1);
}

TEST_F(PacedCheckpointWriterTest, ANewerSnapshotEndsThePauses) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  AwaitPause();
  clock_.Advance(per_piece_ / 2);
  Save(checkpoint_writer.get());
  gate_.AwaitArrived(1);
  AwaitPause();
  EXPECT_THAT(saved(), ElementsAre(1)) << "the newer one has pauses of its own";
}

TEST_F(PacedCheckpointWriterTest, TheSnapshotThatIsBeingWrittenEndsNoPause) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  AwaitPause();
  checkpoint_writer->Save(store_->TakeSnapshot());
  clock_.Advance(per_piece_);
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 2);
}

TEST_F(PacedCheckpointWriterTest, IsDoneHalfWayToTheNextSnapshot) {
  const auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  ASSERT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  const absl::Duration interval = kPieces * per_piece_;  // a paced save takes almost as long
  clock_.Advance(interval);
  Save(checkpoint_writer.get());
  AwaitPause();
  clock_.Advance(interval / 2);
  gate_.AwaitArrived(2);
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(PacedCheckpointWriterTest, AnErrorBetweenPausesEndsOneSaveOnly) {
  const auto checkpoint_writer = NewWriter();
  fs_.FillDiskAfter(3 << 20);
  Save(checkpoint_writer.get());
  AwaitPause();
  clock_.Advance(absl::Minutes(1));
  gate_.AwaitArrived(1);
  EXPECT_THAT(failed(), ElementsAre(1));
  EXPECT_THAT(memory_.ListDirectory("d").value(), ElementsAre());
  fs_.Heal();
  Save(checkpoint_writer.get());
  EXPECT_TRUE(checkpoint_writer->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(2));
}

TEST_F(PacedCheckpointWriterTest, ACallerWhoWaitsHearsOfAnErrorAfterThePauses) {
  const auto checkpoint_writer = NewWriter();
  fs_.FillDiskAfter(3 << 20);
  Save(checkpoint_writer.get());
  AwaitPause();
  EXPECT_TRUE(absl::IsResourceExhausted(checkpoint_writer->WaitUntilIdle()));
}

TEST_F(PacedCheckpointWriterTest, TheEndWritesOnWithoutPauses) {
  auto checkpoint_writer = NewWriter();
  Save(checkpoint_writer.get());
  AwaitPause();
  checkpoint_writer.reset();
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
}

}  // namespace
}  // namespace lockstep
