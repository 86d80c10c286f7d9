#include "lockstep/server/chief/run/run_summaries.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/hanging_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class RunSummariesTest : public ::testing::Test {
 protected:
  void Start(int64_t every_steps, int64_t examples_per_step = 0, bool writes_loss = true) {
    RunSummaries::Options options;
    options.writes_loss = writes_loss;
    options.clock = &clock_;
    options.examples_per_step = examples_per_step;
    options.every_steps = every_steps;
    EventQueue::Options queue;
    queue.clock = &clock_;
    auto writer = EventWriter::Create(&disk_, &clock_, "logs", "host").value();
    path_ = writer->path();
    summaries_ =
        std::make_unique<RunSummaries>(options, /*step=*/0, std::make_unique<EventQueue>(queue, std::move(writer)));
  }
  // Destroys the summaries, and returns what they wrote, in order, as "step tag value" and "step kind path".
  std::vector<std::string> Lines() {
    summaries_.reset();
    const auto reader = RecordReader::Open(&fs_, path_).value();
    std::vector<std::string> lines;
    for (uint64_t offset = 0; offset < reader->size();) {
      std::string payload;
      offset = reader->ReadAt(offset, &payload).value().next;
      v1::Event event;
      EXPECT_TRUE(event.ParseFromString(payload));
      for (const auto& value : event.summary().value()) {
        lines.push_back(absl::StrCat(event.step(), " ", value.tag(), " ", value.simple_value()));
      }
      if (!event.has_session_log()) continue;
      lines.push_back(absl::StrCat(event.step(), " ", v1::SessionLog::SessionStatus_Name(event.session_log().status()),
                                   " ", event.session_log().checkpoint_path()));
    }
    return lines;
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  HangingFileSystem disk_{&fs_};
  std::string path_;
  std::unique_ptr<RunSummaries> summaries_;
};

TEST_F(RunSummariesTest, WritesScalarsAtMultiplesAndAtTheEnd) {
  Start(/*every_steps=*/4);
  for (int64_t step = 1; step <= 10; ++step)
    summaries_->OnCommit({step, 0.5 * static_cast<double>(step), 0.125f, {}, /*last=*/step == 10});
  EXPECT_THAT(Lines(), ElementsAre("4 loss 2", "4 learning_rate 0.125", "8 loss 4", "8 learning_rate 0.125",
                                   "10 loss 5", "10 learning_rate 0.125"));
}

TEST_F(RunSummariesTest, TheRateIsThatSinceTheLastSummary) {
  Start(/*every_steps=*/4, /*examples_per_step=*/64);
  clock_.Advance(absl::Seconds(2));
  for (int64_t step = 1; step <= 4; ++step) summaries_->OnCommit({step, 1, 0.5f});
  clock_.Advance(absl::Seconds(8));
  for (int64_t step = 5; step <= 8; ++step) summaries_->OnCommit({step, 1, 0.5f});
  EXPECT_THAT(Lines(), ElementsAre("4 loss 1", "4 learning_rate 0.5", "4 global_step/sec 2", "4 examples/sec 128",
                                   "8 loss 1", "8 learning_rate 0.5", "8 global_step/sec 0.5", "8 examples/sec 32"));
}

TEST_F(RunSummariesTest, LeavesLossAndRateToAProgramThatWritesThem) {
  Start(/*every_steps=*/4, /*examples_per_step=*/64, /*writes_loss=*/false);
  clock_.Advance(absl::Seconds(2));
  summaries_->OnCommit({4, 1, 0.5f, UpdateNorms{3, 8, 2}});
  EXPECT_THAT(Lines(), ElementsAre("4 learning_rate 0.5", "4 global_norm/gradient_norm 3", "4 update_ratio 0.25",
                                   "4 examples/sec 128"));
}

TEST_F(RunSummariesTest, CountsTheExamplesOfEachStep) {
  Start(/*every_steps=*/4, /*examples_per_step=*/64);
  clock_.Advance(absl::Seconds(2));
  for (int64_t step = 1; step <= 3; ++step) summaries_->OnCommit({step, 1, 0.5f});
  summaries_->SetExamplesPerStep(128, /*step=*/3);
  summaries_->OnCommit({4, 1, 0.5f});
  clock_.Advance(absl::Seconds(8));
  for (int64_t step = 5; step <= 8; ++step) summaries_->OnCommit({step, 1, 0.5f});
  EXPECT_THAT(Lines(), ElementsAre("4 loss 1", "4 learning_rate 0.5", "4 global_step/sec 2", "4 examples/sec 160",
                                   "8 loss 1", "8 learning_rate 0.5", "8 global_step/sec 0.5", "8 examples/sec 64"));
}

TEST_F(RunSummariesTest, WritesTheNormsOfAnUpdateThatHasThem) {
  Start(/*every_steps=*/2);
  EXPECT_EQ(summaries_->norms_every_steps(), 2);
  summaries_->OnCommit({2, 1, 0.5f, UpdateNorms{3, 8, 2}});
  EXPECT_THAT(Lines(),
              ElementsAre("2 loss 1", "2 learning_rate 0.5", "2 global_norm/gradient_norm 3", "2 update_ratio 0.25"));
}

TEST_F(RunSummariesTest, WritesMetricsWithTheLoss) {
  Start(/*every_steps=*/4, /*examples_per_step=*/0, /*writes_loss=*/false);
  for (int64_t step = 3; step <= 5; ++step) {
    RunSummaries::Update update;
    update.step = step;
    update.last = step == 5;
    update.metrics = {{"accuracy", 0.125 * static_cast<double>(step)}};
    summaries_->OnCommit(update);
  }
  EXPECT_THAT(Lines(), ElementsAre("4 learning_rate 0", "4 accuracy 0.5", "5 learning_rate 0", "5 accuracy 0.625"));
}

TEST_F(RunSummariesTest, WritesNoLossWithoutAnInterval) {
  Start(/*every_steps=*/0);
  EXPECT_EQ(summaries_->norms_every_steps(), 0);
  summaries_->OnCommit({10, 1});
  EXPECT_THAT(Lines(), ElementsAre());
}

TEST_F(RunSummariesTest, LogsTheSession) {
  Start(/*every_steps=*/1);
  summaries_->OnStart(3);
  summaries_->OnSaved(4, "logs/model.ckpt-4");
  summaries_->OnEnd();
  EXPECT_THAT(Lines(), ElementsAre("3 START ", "4 CHECKPOINT logs/model.ckpt-4", "0 STOP "));
}

TEST_F(RunSummariesTest, StartOfAResumedRunNamesTheNextStep) {
  Start(/*every_steps=*/1);
  summaries_->OnStart(3, /*resumed=*/true);
  EXPECT_THAT(Lines(), ElementsAre("4 START "));
}

TEST_F(RunSummariesTest, SummariesMayFollowAFlushAndNoneTheEnd) {
  Start(/*every_steps=*/0);
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  summaries_->Flush();
  EXPECT_TRUE(summaries_->Add(summary, 4).ok());
  summaries_->OnEnd();
  summaries_->OnEnd();
  EXPECT_THAT(Lines(), ElementsAre("4 mine 0", "0 STOP "));
}

TEST_F(RunSummariesTest, WhatComesAfterTheEndIsNotWritten) {
  Start(/*every_steps=*/1);
  summaries_->OnEnd();
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  EXPECT_TRUE(absl::IsOutOfRange(summaries_->Add(summary, 4)));
  summaries_->OnSaved(4, "logs/model.ckpt-4");
  summaries_->OnCommit({5, 1});
  EXPECT_THAT(Lines(), ElementsAre("0 STOP "));
}

TEST_F(RunSummariesTest, ASummaryThatIsDroppedIsAnError) {
  Start(/*every_steps=*/0);
  disk_.Hang("events");
  summaries_->OnStart(0);
  disk_.AwaitHanging();
  v1::Summary summary;
  summary.add_value()->set_tag(std::string(1 << 20, 'x'));
  int64_t step = 1;
  absl::Status added;
  while (step < 100 && (added = summaries_->Add(summary, step)).ok()) ++step;
  EXPECT_TRUE(absl::IsResourceExhausted(added)) << added;
  EXPECT_EQ(step, 64) << "64 MiB wait";
  disk_.Release();
  EXPECT_EQ(Lines().size(), 64u) << "START, and each that was accepted";
}

TEST_F(RunSummariesTest, TheEndWaitsForNoDiskThatWasLateBefore) {
  Start(/*every_steps=*/0);
  disk_.Hang("events");
  summaries_->OnStart(0);
  disk_.AwaitHanging();
  std::thread flush([&] { summaries_->Flush(); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(5));
  flush.join();
  summaries_->OnEnd();  // the simulated clock does not advance
  disk_.Release();
  EXPECT_THAT(Lines(), ElementsAre("0 START ", "0 STOP "));
}

TEST_F(RunSummariesTest, WithoutAnEventFileNothingHappens) {
  RunSummaries::Options options;
  options.clock = &clock_;
  options.every_steps = 1;
  RunSummaries summaries(options, /*step=*/0, nullptr);
  summaries.OnStart(0);
  EXPECT_EQ(summaries.norms_every_steps(), 0);
  summaries.OnCommit({1, 1});
  summaries.OnSaved(1, "prefix");
  summaries.Flush();
  summaries.OnEnd();
}

}  // namespace
}  // namespace lockstep
