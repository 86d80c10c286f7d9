#include "lockstep/server/chief/run/run_history.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

config::v1::TrainingConfig Steps(int64_t steps) {
  config::v1::TrainingConfig config;
  config.set_steps(steps);
  return config;
}

using Operation = FaultyFileSystem::Operation;

class RunHistoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunHistory> Open() {
    return std::make_unique<RunHistory>(RunDirectory::Open(&faulty_, "d").value(), absl::UnixEpoch());
  }
  // Begins a new run of 100 steps and writes its record.
  std::unique_ptr<RunHistory> Begin() {
    auto history = Open();
    EXPECT_FALSE(history->Read(7).value());
    history->ResolveTarget(Steps(100), 0);
    EXPECT_TRUE(history->Update([](v1::RunRecord* record) { record->set_declared_by("a"); }).ok());
    return history;
  }

  MemoryFileSystem fs_;
  FaultyFileSystem faulty_{&fs_};
};

TEST_F(RunHistoryTest, WhatIsWrittenIsThereInTheNextLife) {
  auto history = Begin();
  ASSERT_TRUE(history->EndAt(40, "enough").ok());
  EXPECT_EQ(history->target().total_steps(), 40);
  history.reset();
  fs_.DropUnsyncedData();

  history = Open();
  ASSERT_TRUE(history->Read(7).value());
  EXPECT_EQ(history->record().declared_by(), "a");
  history->ResolveTarget(Steps(100), 30);
  EXPECT_EQ(history->target().total_steps(), 40);
  history->ResolveTarget(Steps(100), 40);
  EXPECT_EQ(history->target().total_steps(), 40) << "some workers may not have been notified";
  ASSERT_TRUE(history->Update([](v1::RunRecord* record) { record->set_finished(true); }).ok());
  history->ResolveTarget(Steps(100), 40);
  EXPECT_EQ(history->target().total_steps(), 100);
}

TEST_F(RunHistoryTest, ADamagedGoodEndBelongsToItsProgram) {
  auto history = Begin();
  ASSERT_TRUE(history->Update([](v1::RunRecord* record) { record->set_finished_step(40); }).ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/checkpoint", "model_checkpoint_path: \"model.ckpt-40\"\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/model.ckpt-40.index", "").ok());
  for (const bool changed : {false, true}) {
    history.reset();
    history = Open();
    ASSERT_TRUE(history->Read(7).value());
    ASSERT_TRUE(history->may_change_program());
    if (changed) history->Note([](v1::RunRecord* record) { record->add_program_change()->set_step(40); });
    EXPECT_TRUE(history->OnRestored(40).ok());
    EXPECT_EQ(absl::IsFailedPrecondition(history->OnRestored(30)), changed);
    EXPECT_FALSE(history->may_change_program());
  }
}

TEST_F(RunHistoryTest, IgnoresRunWhoseBroughtValuesAreLost) {
  auto history = Begin();
  ASSERT_TRUE(history->Update([](v1::RunRecord* record) { record->mutable_initial_values()->set_digest("12"); }).ok());
  EXPECT_EQ(history->initial_values().digest(), "12");
  history.reset();
  history = Open();
  EXPECT_FALSE(history->Read(8).value());
  EXPECT_TRUE(history->found_nothing());
  EXPECT_EQ(history->run_id(), "0000000000000007") << "an order of arrival in the logdir has this id";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/export-3.index", "").ok());
  history.reset();
  history = Open();
  EXPECT_FALSE(history->Read(8).value());
  EXPECT_TRUE(history->found_nothing()) << "the file is not of a run";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "d/model.ckpt-0.index", "").ok());
  history.reset();
  history = Open();
  EXPECT_TRUE(history->Read(8).value());
  EXPECT_EQ(history->run_id(), "0000000000000007");
  EXPECT_EQ(history->initial_values().digest(), "12");
}

TEST_F(RunHistoryTest, AnOtherRunIsWrittenWithTheFirstRecord) {
  v1::RunRecord::OtherRun other;
  other.set_run_id("x");
  auto history = Open();
  EXPECT_FALSE(history->Read(7).value());
  EXPECT_TRUE(history->found_nothing());
  ASSERT_TRUE(history->NoteOtherRun(other).ok());
  EXPECT_FALSE(fs_.Exists("d/lockstep.textproto").value()) << "the run has no model yet";
  history->ResolveTarget(Steps(100), 0);
  ASSERT_TRUE(history->Update([](v1::RunRecord* record) { record->set_declared_by("a"); }).ok());
  EXPECT_EQ(ReadRunRecord(&fs_, "d").value()->other_run().run_id(), "x");
  other.set_run_id("y");
  ASSERT_TRUE(history->NoteOtherRun(other).ok());
  EXPECT_EQ(ReadRunRecord(&fs_, "d").value()->other_run().run_id(), "y");
  EXPECT_EQ(ReadRunRecord(&fs_, "d").value()->run_id(), history->run_id());
}

TEST_F(RunHistoryTest, AChangeThatIsNotWrittenDoesNotCount) {
  auto history = Begin();
  faulty_.FailFrom(1, absl::InternalError("Input/output error"));
  EXPECT_FALSE(history->Update([](v1::RunRecord* record) { record->set_declared_by("b"); }).ok());
  EXPECT_EQ(history->record().declared_by(), "a");
  EXPECT_FALSE(history->EndAt(40, "enough").ok());
  EXPECT_EQ(history->target().total_steps(), 100);
}

TEST_F(RunHistoryTest, AnEndThatMayBeThereIsKeptUntilItIsThere) {
  auto history = Begin();
  // Readers see the new record, but a power loss may undo it.
  faulty_.FailMatching(Operation::kSyncDirectory, "d", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsUnknown(history->EndAt(40, "enough")));
  EXPECT_TRUE(history->in_doubt());
  EXPECT_EQ(history->target().total_steps(), 40);
  EXPECT_TRUE(ReadRunRecord(&fs_, "d").value()->has_end());
  faulty_.FailMatching(Operation::kCreate, "d", absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsUnknown(history->EndAt(40, "enough"))) << "as before: the new record may be there";
  faulty_.Heal();
  EXPECT_TRUE(history->EndAt(40, "enough").ok());
  EXPECT_FALSE(history->in_doubt());
  history.reset();
  fs_.DropUnsyncedData();
  history = Open();
  ASSERT_TRUE(history->Read(7).value());
  EXPECT_EQ(history->record().end().step(), 40);
}

TEST_F(RunHistoryTest, TheNextUpdateDropsAChangeInDoubt) {
  auto history = Begin();
  faulty_.FailMatching(Operation::kSyncDirectory, "d", absl::InternalError("Input/output error"));
  EXPECT_TRUE(absl::IsInternal(history->Update([](v1::RunRecord* record) { record->add_assignment(); })));
  EXPECT_TRUE(history->in_doubt());
  EXPECT_EQ(history->record().assignment_size(), 0);
  faulty_.FailMatching(Operation::kCreate, "d", absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(history->EndAt(40, "enough")));
  EXPECT_EQ(history->target().total_steps(), 100);
  EXPECT_TRUE(history->in_doubt());
  faulty_.Heal();
  ASSERT_TRUE(history->Update([](v1::RunRecord* record) { record->set_declared_by("b"); }).ok());
  EXPECT_FALSE(history->in_doubt());
  EXPECT_EQ(ReadRunRecord(&fs_, "d").value()->assignment_size(), 0);
}

TEST_F(RunHistoryTest, WhatTheCheckpointDoesNotHoldIsDropped) {
  auto history = Open();
  ASSERT_FALSE(history->Read(7).value());
  ASSERT_TRUE(history
                  ->Update([](v1::RunRecord* record) {
                    for (const int64_t step : {3, 5, 9}) record->add_assignment()->set_step(step);
                    record->add_change()->set_step(7);
                    record->mutable_config()->mutable_training()->set_seed(1);
                  })
                  .ok());
  v1::SessionState state;
  state.set_assignments(2);
  history->Continue(/*restored=*/6, state, /*changes_settings=*/false);
  EXPECT_EQ(history->record().assignment_size(), 2);
  EXPECT_EQ(history->record().change(0).step(), 6) << "steps from 6 on are computed with the current settings";
  history->Continue(/*restored=*/8, state, /*changes_settings=*/true);
  ASSERT_EQ(history->record().change_size(), 2);
  EXPECT_EQ(history->record().change(1).step(), 8);
  EXPECT_EQ(history->record().change(1).before().training().seed(), 1);
}

TEST_F(RunHistoryTest, NotesAreWrittenWithTheNextChange) {
  auto history = Begin();
  const auto on_disk = [&] { return ReadRunRecord(&fs_, "d").value()->assignment_size(); };
  const auto note = [&](int64_t step) {
    history->Note([step](v1::RunRecord* record) { record->add_assignment()->set_step(step); });
  };
  note(3);
  EXPECT_EQ(history->record().assignment_size(), 1);
  EXPECT_EQ(on_disk(), 0);
  ASSERT_TRUE(history
                  ->Update([&](v1::RunRecord* record) {
                    record->set_declared_by("b");
                    note(4);  // from another thread, during the write
                  })
                  .ok());
  EXPECT_EQ(on_disk(), 1);
  EXPECT_EQ(history->record().declared_by(), "b");
  ASSERT_EQ(history->record().assignment_size(), 2);
  EXPECT_EQ(history->record().assignment(1).step(), 4);
  faulty_.FailFrom(1, absl::InternalError("Input/output error"));
  EXPECT_FALSE(history->Flush().ok());
  EXPECT_EQ(history->record().assignment_size(), 2);
  faulty_.Heal();
  EXPECT_TRUE(history->Flush().ok());
  EXPECT_EQ(on_disk(), 2);
  faulty_.FailFrom(1, absl::InternalError("Input/output error"));
  EXPECT_TRUE(history->Flush().ok()) << "there is nothing to write";
  note(5);
  faulty_.Heal();
  EXPECT_TRUE(history->EndAt(40, "enough").ok());
  EXPECT_EQ(on_disk(), 3);
}

TEST_F(RunHistoryTest, WithoutALogdirItIsKeptInMemory) {
  RunHistory history(nullptr, absl::FromUnixMicros(7));
  EXPECT_EQ(history.generation(), 7);
  EXPECT_FALSE(history.Read(7).value());
  EXPECT_TRUE(history.found_nothing());
  EXPECT_EQ(history.run_id(), "0000000000000007");
  history.ResolveTarget(Steps(100), 0);
  ASSERT_TRUE(history.EndAt(40, "enough").ok());
  EXPECT_EQ(history.target().total_steps(), 40);
  EXPECT_EQ(history.record().end().reason(), "enough");
}

}  // namespace
}  // namespace lockstep
