#include "lockstep/server/chief/journal/run_journal.h"

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr char kPath[] = "/events.jsonl";

class RunJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunJournal> NewJournal(int64_t generation = 1) {
    RunJournal::Options options;
    options.clock = &clock_;
    options.fs = &fs_;
    options.generation = generation;
    options.period = absl::ZeroDuration();
    return std::make_unique<RunJournal>(options);
  }
  void Steps(int64_t first, int64_t last, RunJournal* journal) {
    for (int64_t step = first; step <= last; ++step) {
      clock_.Advance(absl::Milliseconds(100));
      journal->OnCommitted(step, 1.0 / static_cast<double>(step), clock_.Now());
    }
  }
  static v1::WatchRunReply All(const RunJournal& journal) {
    RunJournal::Cursor cursor;
    v1::WatchRunReply reply;
    journal.Fill(&cursor, &reply);
    journal.FillCounters(&reply);
    return reply;
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
};

TEST_F(RunJournalTest, AWatcherGetsWhatIsNew) {
  const auto journal = NewJournal();
  RunJournal::Cursor cursor;
  Steps(1, 3, journal.get());
  journal->OnEvent({RunEvent::kSaved, 3, "", "logdir/model.ckpt-3"});
  v1::WatchRunReply first;
  journal->Fill(&cursor, &first);
  EXPECT_TRUE(first.new_history());
  ASSERT_EQ(first.point_size(), 3);
  EXPECT_NEAR(first.point(2).slowest_seconds(), 0.1, 1e-9);
  ASSERT_EQ(first.event_size(), 1);
  EXPECT_EQ(first.event(0).kind(), "saved");
  EXPECT_EQ(first.event(0).text(), "saved logdir/model.ckpt-3");
  Steps(4, 4, journal.get());
  v1::WatchRunReply next;
  journal->Fill(&cursor, &next);
  EXPECT_FALSE(next.new_history());
  ASSERT_EQ(next.point_size(), 1);
  EXPECT_EQ(next.point(0).step(), 4);
  EXPECT_EQ(next.event_size(), 0);
}

TEST_F(RunJournalTest, TheNextChiefContinuesTheHistory) {
  {
    const auto journal = NewJournal(1);
    ASSERT_TRUE(journal->Open(kPath).ok());
    journal->OnEvent({RunEvent::kJoined, 0, "worker-1", "17"});
    Steps(1, 10, journal.get());
    journal->OnEvent({RunEvent::kSaved, 7, "", "model.ckpt-7"});
  }
  const auto journal = NewJournal(2);
  ASSERT_TRUE(journal->Open(kPath).ok());
  journal->OnRestored(7, "model.ckpt-7");
  Steps(8, 9, journal.get());
  const v1::WatchRunReply all = All(*journal);
  ASSERT_EQ(all.point_size(), 9);
  ASSERT_EQ(all.event_size(), 3);
  EXPECT_EQ(all.event(0).kind(), "worker_joined");
  EXPECT_EQ(all.event(0).generation(), 1);
  EXPECT_EQ(all.event(2).text(), "the run continues at step 7 from model.ckpt-7; 3 steps are computed again");
  EXPECT_EQ(all.event(2).number(), 3);
  EXPECT_EQ(all.event(2).generation(), 2);
  EXPECT_EQ(all.counters().recomputed_steps(), 3);
  EXPECT_EQ(all.counters().checkpoints_saved(), 0) << "counters are the chief's";
}

TEST_F(RunJournalTest, RecomputedStepsAreCountedAcrossChiefs) {
  for (int64_t generation = 1; generation <= 3; ++generation) {
    const auto journal = NewJournal(generation);
    ASSERT_TRUE(journal->Open(kPath).ok());
    if (generation > 1) journal->OnRestored(4, "model.ckpt-4");
    Steps(generation > 1 ? 5 : 1, 10, journal.get());
    EXPECT_EQ(All(*journal).counters().recomputed_steps(), 6 * (generation - 1));
    EXPECT_EQ(All(*journal).point_size(), 10);
  }
}

TEST_F(RunJournalTest, DamagedLinesAreDropped) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, kPath,
                                  "{\"point\":{\"step\":1,\"steps\":1,\"loss\":2}}\nnot JSON\n{\"point\":{\"step\":2,"
                                  "\"steps\":1,\"loss\":null,\"new\":1}}\n{\"event\":{\"kind\":\"sav")
                  .ok());
  const auto journal = NewJournal();
  ASSERT_TRUE(journal->Open(kPath).ok());
  const v1::WatchRunReply all = All(*journal);
  EXPECT_EQ(all.point_size(), 2);
  EXPECT_EQ(all.event_size(), 0);
}

TEST_F(RunJournalTest, EventsAndLinesAreBounded) {
  const auto journal = NewJournal();
  ASSERT_TRUE(journal->Open(kPath).ok());
  for (int i = 0; i < 5000; ++i) journal->OnEvent({RunEvent::kJoined, 0, "worker-1", absl::StrCat(i)});
  const v1::WatchRunReply all = All(*journal);
  ASSERT_EQ(all.event_size(), 500);
  EXPECT_EQ(all.event(499).number(), 5000);
  EXPECT_EQ(all.counters().sessions_opened(), 5000);
}

TEST_F(RunJournalTest, ALossThatIsNotFiniteIsReadBack) {
  {
    const auto journal = NewJournal(1);
    ASSERT_TRUE(journal->Open(kPath).ok());
    journal->OnCommitted(1, std::numeric_limits<double>::quiet_NaN(), clock_.Now());
  }
  const auto recorded = ReadJournal(&fs_, kPath);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->history.points().size(), 1u);
}

TEST_F(RunJournalTest, CountsDamagedCheckpoints) {
  const auto journal = NewJournal();
  journal->OnEvent({RunEvent::kDamaged, 0, "", "d/model.ckpt-9", absl::DataLossError("a checksum is wrong")});
  journal->OnEvent({RunEvent::kPlaceTaken, 3, "worker-1", "batch 4"});
  const v1::WatchRunReply all = All(*journal);
  EXPECT_EQ(all.counters().checkpoints_damaged(), 1);
  EXPECT_EQ(all.counters().contributions_dropped(), 1);
  EXPECT_EQ(all.event(0).kind(), "checkpoint_damaged");
  EXPECT_EQ(all.event(0).severity(), v1::EventRecord::WARNING);
  EXPECT_EQ(all.event(0).text(), "d/model.ckpt-9 is damaged and skipped: a checksum is wrong");
}

TEST_F(RunJournalTest, CountsSavesByTheirDuration) {
  const auto journal = NewJournal();
  for (const double seconds : {0.01, 0.02, 1000.0}) {
    RunEvent saved{RunEvent::kSaved, 3, "", "model.ckpt-3"};
    saved.time = absl::Seconds(seconds);
    journal->OnEvent(saved);
  }
  const v1::WatchRunReply all = All(*journal);
  EXPECT_THAT(all.counters().save_bounds(), ElementsAre(0.01, 0.1, 0.5, 2.5, 10, 60, 300));
  EXPECT_THAT(all.counters().save_bucket(), ElementsAre(1, 1, 0, 0, 0, 0, 0, 1)) << "a bound is in its bucket";
  EXPECT_DOUBLE_EQ(all.counters().save_seconds_sum(), 1000.03);
}

TEST_F(RunJournalTest, EventsWithoutAMeaningForPeopleAreLeftOut) {
  const auto journal = NewJournal();
  journal->OnEvent({RunEvent::kRoom, 3});
  journal->OnEvent({RunEvent::kFinished, 3});
  const v1::WatchRunReply all = All(*journal);
  ASSERT_EQ(all.event_size(), 1);
  EXPECT_EQ(all.event(0).text(), "the run is finished at step 3");
}

}  // namespace
}  // namespace lockstep
