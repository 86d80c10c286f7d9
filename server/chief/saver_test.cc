#include "server/chief/saver.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/simulated_clock.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/io/faulty_file_system.h"
#include "common/io/memory_file_system.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/chief/save_pace.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

// Lets a test hold the saver in its callback, between two saves.
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
  // Blocks until so many have come to the gate.
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

class SaverTest : public ::testing::Test {
 protected:
  // A checkpoint holds three times so many floats. One of the usual size is written without a pause.
  explicit SaverTest(int64_t elements = 1000) : elements_(elements) {
    EXPECT_TRUE(memory_.CreateDirectory("d").ok());
    ModelSpec model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(variables { name: "w" dtype: DT_FLOAT trainable: true })", &model));
    model.mutable_variables(0)->add_shape(elements);
    OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("adam {}", &optimizer));
    store_ = VariableStore::Create(model, optimizer).value();
    store_->Initialize(1);
  }

  std::unique_ptr<Saver> NewSaver(int64_t keep = 5) {
    Saver::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.directory = "d";
    options.keep = keep;
    options.on_saved = [this](int64_t step, const std::string& prefix, const absl::Status& status) {
      {
        MutexLock lock(&mutex_);
        (status.ok() ? saved_ : failed_).push_back(step);
        prefixes_.push_back(prefix);
      }
      gate_.Pass();
    };
    return Saver::Create(std::move(options)).value();
  }
  // Runs one step and returns its snapshot.
  VariableStore::Snapshot NextStep() {
    store_->BeginUpdate(1);
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

TEST_F(SaverTest, ASnapshotBecomesACheckpointThatRestores) {
  const auto saver = NewSaver();
  EXPECT_TRUE(saver->WaitUntilIdle().ok()) << "nothing was asked for";
  saver->Save(NextStep());
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_EQ(LatestCheckpoint(&memory_, "d").value(), std::string("d/model.ckpt-1"));
  const auto reader = BundleReader::Open(&memory_, "d/model.ckpt-1").value();
  EXPECT_TRUE(reader->Verify().ok());
  EXPECT_EQ(reader->Read("global_step")->flat<int64_t>()[0], 1);
  EXPECT_THAT(reader->names(), ElementsAre("beta1_power", "beta2_power", "global_step", "w", "w/Adam", "w/Adam_1"));
}

TEST_F(SaverTest, ANewerSnapshotTakesThePlaceOfOneThatWaits) {
  const auto saver = NewSaver();
  gate_.Close();
  saver->Save(NextStep());
  gate_.AwaitArrived(1);
  for (int i = 0; i < 3; ++i) saver->Save(NextStep());
  gate_.Open();
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 4));
}

TEST_F(SaverTest, TheStepThatIsBeingWrittenIsNotWrittenTwice) {
  const auto saver = NewSaver();
  gate_.Close();
  const VariableStore::Snapshot snapshot = NextStep();
  saver->Save(snapshot);
  gate_.AwaitArrived(1);
  saver->Save(snapshot);
  gate_.Open();
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
}

TEST_F(SaverTest, AFullDiskIsReportedAndTheLastGoodCheckpointStays) {
  const auto saver = NewSaver();
  saver->Save(NextStep());
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  for (const uint64_t room : {0, 100, 5000, 11000, 12100}) {
    fs_.FillDiskAfter(room);
    saver->Save(NextStep());
    const absl::Status status = saver->WaitUntilIdle();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << room << ": " << status;
    EXPECT_EQ(LatestCheckpoint(&memory_, "d").value(), std::string("d/model.ckpt-1"));
    EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
  }
  EXPECT_EQ(failed().size(), 5u);
  fs_.Heal();
  saver->Save(NextStep());
  EXPECT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 7));
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-1", "d/model.ckpt-7"));
}

// SAVE-01
TEST_F(SaverTest, KeepsTheNewestFew) {
  const auto saver = NewSaver(/*keep=*/2);
  for (int i = 0; i < 4; ++i) {
    saver->Save(NextStep());
    ASSERT_TRUE(saver->WaitUntilIdle().ok());
  }
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-3", "d/model.ckpt-4"));
  EXPECT_THAT(memory_.ListDirectory("d").value(),
              ElementsAre("checkpoint", "model.ckpt-3.data-00000-of-00001", "model.ckpt-3.index",
                          "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index"));
}

TEST_F(SaverTest, AnOlderSnapshotNeitherReplacesNorFollowsANewerOne) {
  const auto saver = NewSaver();
  const VariableStore::Snapshot first = NextStep(), second = NextStep(), third = NextStep();
  gate_.Close();
  saver->Save(first);
  gate_.AwaitArrived(1);
  saver->Save(third);
  saver->Save(second);
  saver->SaveAtOnce(second);
  gate_.Open();
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  saver->Save(second);
  saver->SaveAtOnce(third);
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  EXPECT_THAT(Listed(), ElementsAre("d/model.ckpt-1", "d/model.ckpt-3"));
}

TEST_F(SaverTest, TrainingGoesOnWhileASnapshotWaits) {
  const auto saver = NewSaver();
  gate_.Close();
  saver->Save(NextStep());
  gate_.AwaitArrived(1);
  saver->Save(NextStep());
  const float before = store_->values()->as<float>()[0];
  for (int i = 0; i < 3; ++i) NextStep();
  EXPECT_NE(store_->values()->as<float>()[0], before);
  gate_.Open();
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  const auto reader = BundleReader::Open(&memory_, "d/model.ckpt-2").value();
  EXPECT_EQ(reader->Read("w")->flat<float>()[0], before);
}

TEST_F(SaverTest, TheEndWritesWhatWaits) {
  auto saver = NewSaver();
  gate_.Close();
  saver->Save(NextStep());
  gate_.AwaitArrived(1);
  saver->Save(NextStep());
  std::thread opener([this] { gate_.Open(); });
  saver.reset();
  opener.join();
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(SaverTest, ABadStateFileIsAnError) {
  ASSERT_TRUE(WriteFileAtomically(&memory_, "d/checkpoint", "not a state file {").ok());
  Saver::Options options;
  options.fs = &memory_;
  options.clock = &clock_;
  options.directory = "d";
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(std::move(options)).status()));
}

// A checkpoint is 12 MiB and a few bytes: 13 pieces, each of which but the first waits for its turn.
class PacedSaverTest : public SaverTest {
 protected:
  PacedSaverTest() : SaverTest(/*elements=*/1 << 20) {}

  static constexpr int kPieces = 13;
  const absl::Duration per_piece_ = absl::Seconds(SavePace::kPieceBytes / SavePace::kBytesPerSecond);

  void Save(Saver* saver) {
    VariableStore::Snapshot snapshot = NextStep();
    operations_before_ = fs_.operations();
    saver->Save(std::move(snapshot));
  }
  // Until the saver pauses.
  void AwaitPause() { clock_.AwaitWaiters(1); }
  // Of the first checkpoint that is being written since Save.
  int64_t PiecesWritten() {
    constexpr int64_t kCreate = 2;  // looks for a checkpoint to replace, makes the data file
    return fs_.operations() - operations_before_ - kCreate;
  }

 private:
  int64_t operations_before_ = 0;
};

TEST_F(PacedSaverTest, WritesPieceByPiece) {
  const auto saver = NewSaver();
  Save(saver.get());
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

TEST_F(PacedSaverTest, ACallerWhoWaitsWritesAtOnce) {
  const auto saver = NewSaver();
  Save(saver.get());
  AwaitPause();
  EXPECT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_THAT(failed(), ElementsAre()) << "nobody hears that it was begun twice";
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
  Save(saver.get());
  EXPECT_TRUE(saver->WaitUntilIdle().ok()) << "nor does the next save pause";
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(PacedSaverTest, WhatIsSavedAtOnceHasNoPauses) {
  const auto saver = NewSaver();
  saver->SaveAtOnce(NextStep());
  gate_.AwaitArrived(1);
  EXPECT_THAT(saved(), ElementsAre(1));
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  Save(saver.get());
  AwaitPause();
  saver->SaveAtOnce(NextStep());
  gate_.AwaitArrived(2);
  EXPECT_THAT(saved(), ElementsAre(1, 3)) << "nothing is left to do for the one that was begun";
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  clock_.Advance(absl::Hours(1));
  Save(saver.get());
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 1) << "the next one has its pauses again";
}

TEST_F(PacedSaverTest, TheStepThatIsBeingWrittenIsBegunAgainAtOnce) {
  const auto saver = NewSaver();
  Save(saver.get());
  AwaitPause();
  saver->SaveAtOnce(store_->TakeSnapshot());
  gate_.AwaitArrived(1);
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1)) << "and only once";
  EXPECT_THAT(failed(), ElementsAre());
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
}

TEST_F(PacedSaverTest, ACallerMayComeAfterANewerSnapshot) {
  const auto saver = NewSaver();
  gate_.Close();
  Save(saver.get());
  AwaitPause();
  Save(saver.get());
  gate_.AwaitArrived(1);
  Save(saver.get());
  gate_.Open();
  EXPECT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(1, 3));
}

TEST_F(PacedSaverTest, PausesAgainAfterACallerHasWaited) {
  const auto saver = NewSaver();
  Save(saver.get());
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  clock_.Advance(absl::Hours(1));
  Save(saver.get());
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 1);
}

TEST_F(PacedSaverTest, ANewerSnapshotEndsThePauses) {
  const auto saver = NewSaver();
  Save(saver.get());
  AwaitPause();
  clock_.Advance(per_piece_ / 2);
  Save(saver.get());
  gate_.AwaitArrived(1);
  AwaitPause();
  EXPECT_THAT(saved(), ElementsAre(1)) << "the newer one has pauses of its own";
}

TEST_F(PacedSaverTest, TheSnapshotThatIsBeingWrittenEndsNoPause) {
  const auto saver = NewSaver();
  Save(saver.get());
  AwaitPause();
  saver->Save(store_->TakeSnapshot());
  clock_.Advance(per_piece_);
  AwaitPause();
  EXPECT_EQ(PiecesWritten(), 2);
}

TEST_F(PacedSaverTest, IsDoneHalfWayToTheNextSnapshot) {
  const auto saver = NewSaver();
  Save(saver.get());
  ASSERT_TRUE(saver->WaitUntilIdle().ok());
  const absl::Duration interval = kPieces * per_piece_;  // a save without hurry takes almost as long
  clock_.Advance(interval);
  Save(saver.get());
  AwaitPause();
  clock_.Advance(interval / 2);
  gate_.AwaitArrived(2);
  EXPECT_THAT(saved(), ElementsAre(1, 2));
}

TEST_F(PacedSaverTest, AnErrorBetweenPausesEndsTheSaveAndHarmsNoOther) {
  const auto saver = NewSaver();
  fs_.FillDiskAfter(3 << 20);
  Save(saver.get());
  AwaitPause();
  clock_.Advance(absl::Minutes(1));
  gate_.AwaitArrived(1);
  EXPECT_THAT(failed(), ElementsAre(1));
  EXPECT_THAT(memory_.ListDirectory("d").value(), ElementsAre());
  fs_.Heal();
  Save(saver.get());
  EXPECT_TRUE(saver->WaitUntilIdle().ok());
  EXPECT_THAT(saved(), ElementsAre(2));
}

TEST_F(PacedSaverTest, ACallerWhoWaitsHearsOfAnErrorAfterThePauses) {
  const auto saver = NewSaver();
  fs_.FillDiskAfter(3 << 20);
  Save(saver.get());
  AwaitPause();
  EXPECT_TRUE(absl::IsResourceExhausted(saver->WaitUntilIdle()));
}

TEST_F(PacedSaverTest, TheEndWritesOnWithoutPauses) {
  auto saver = NewSaver();
  Save(saver.get());
  AwaitPause();
  saver.reset();
  EXPECT_THAT(saved(), ElementsAre(1));
  EXPECT_TRUE(BundleReader::Open(&memory_, "d/model.ckpt-1").value()->Verify().ok());
}

}  // namespace
}  // namespace lockstep
