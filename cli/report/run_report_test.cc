#include "lockstep/cli/report/run_report.h"

#include <sstream>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"

namespace lockstep {
namespace {

class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() { RecordSignRun(&fs_, "/run", config_); }
  std::unique_ptr<RunReport> NewReport(const std::string& logdir = "/run") {
    auto report = RunReport::Create(&fs_, config_, logdir);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : nullptr;
  }
  static std::string End(const RunReport& report, const RunReport::End& end = {10, ""}) {
    std::ostringstream out;
    EXPECT_EQ(report.Finished(end, absl::Seconds(2), out), absl::OkStatus());
    return out.str();
  }
  static std::string LastLine(const RunReport& report) {
    const auto end = report.RecordedEnd();
    EXPECT_TRUE(end.ok()) << end.status();
    const std::vector<std::string> lines = absl::StrSplit(End(report, *end), '\n', absl::SkipEmpty());
    return lines.back();
  }

  MemoryFileSystem fs_;
  config::v1::RunSpec config_ = SignRunSpec();
};

TEST_F(RunReportTest, ReportsTheBeginningAndEndOfANewRun) {
  const auto report = NewReport();
  EXPECT_EQ(report->Beginning("2 workers"), "training with 2 workers, 10 steps of 1 slot, logdir /run");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(End(*report),
            "test: 4 examples: accuracy 0.75\n"
            "checkpoint  /run/model.ckpt-10   (./lockstep inspect /run)\n"
            "summaries   tensorboard --logdir=/run\n"
            "finished at step 10 in 2s (5 steps/s from start to end): all steps are done\n");
}

TEST_F(RunReportTest, CountsStepsSinceAResumedCheckpoint) {
  SaveSignCheckpoint(&fs_, "/run", 6, 1);
  const auto report = NewReport();
  EXPECT_EQ(report->Beginning("1 worker"),
            "training with 1 worker, 10 steps of 1 slot, logdir /run, resuming from step 6");
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  EXPECT_EQ(LastLine(*report), "finished at step 10 in 2s (2 steps/s from start to end): all steps are done");
}

TEST_F(RunReportTest, SuggestsACommandForAFinishedRun) {
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  const auto report = NewReport();
  EXPECT_TRUE(report->was_finished());
  EXPECT_EQ(LastLine(*report),
            "finished at step 10 already; to continue: --steps=MORE, to start over: --logdir=ANOTHER");
}

TEST_F(RunReportTest, TheLastLineHasTheRecordedReason) {
  const auto report = NewReport();
  SaveSignCheckpoint(&fs_, "/run", 7, 1);
  EXPECT_EQ(LastLine(*report),
            "finished at step 7 in 2s (3.5 steps/s from start to end): an earlier end was requested");
  v1::RunRecord record = ReadRunRecord(&fs_, "/run").value().value();
  record.mutable_end()->set_step(7);
  record.mutable_end()->set_reason("the loss is good enough");
  ASSERT_EQ(WriteRunRecord(&fs_, "/run", record), absl::OkStatus());
  EXPECT_EQ(LastLine(*report), "finished at step 7 in 2s (3.5 steps/s from start to end): the loss is good enough");
}

TEST_F(RunReportTest, SaysWhyARunIsNotEvaluated) {
  config_.mutable_evaluation()->set_split("dev");
  EXPECT_EQ(End(*NewReport()),
            "not evaluated: the configuration has no split \"dev\"\n"
            "finished at step 10 in 2s (5 steps/s from start to end): all steps are done\n");
  EXPECT_EQ(End(*NewReport("")),
            "not evaluated: nothing was kept without a --logdir\n"
            "finished at step 10 in 2s (5 steps/s from start to end): all steps are done\n");
}

TEST_F(RunReportTest, TheLastLineFollowsAFailedEvaluation) {
  const auto report = NewReport();
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  ASSERT_EQ(WriteFileAtomically(&fs_, "/run/model.ckpt-10.data-00000-of-00001", "short"), absl::OkStatus());
  std::ostringstream out;
  EXPECT_FALSE(report->Finished({10, ""}, absl::Seconds(2), out).ok());
  EXPECT_EQ(out.str().substr(out.str().rfind("finished")),
            "finished at step 10 in 2s (5 steps/s from start to end): all steps are done\n");
}

TEST_F(RunReportTest, FindsInputErrorsBeforeTraining) {
  config_.mutable_model()->mutable_layer(0)->add_input("nowhere");
  EXPECT_EQ(RunReport::Create(&fs_, config_, "/run").status().code(), absl::StatusCode::kInvalidArgument);
  config_ = SignRunSpec();
  config_.mutable_input()->mutable_split(0)->mutable_csv()->add_file("/data/none.csv");
  EXPECT_EQ(RunReport::Create(&fs_, config_, "/run").status().message(),
            "input.split[0]: there is no file /data/none.csv");
}

TEST_F(RunReportTest, WritesTheLastEvaluationNextToOthers) {
  config_.mutable_evaluation()->set_every_steps(5);
  const auto report = NewReport();
  SaveSignCheckpoint(&fs_, "/run", 10, 1);
  End(*report);
  EXPECT_EQ(fs_.ListDirectory("/run/eval").value().size(), 1);
}

TEST(DefaultLogdirTest, IsNamedAfterTheConfiguration) {
  EXPECT_EQ(DefaultLogdir("examples/mlp.textproto"), "runs/mlp");
  EXPECT_EQ(DefaultLogdir("/a/b.c/mlp"), "runs/mlp");
}

TEST(LastLinesTest, ShowsTheEndOfALogFromWhereItBegan) {
  MemoryFileSystem fs;
  ASSERT_TRUE(WriteFileAtomically(&fs, "/log", "old\none\ntwo\nthree\n").ok());
  EXPECT_EQ(LastLines(&fs, "/log", 0, 2), "  two\n  three\n");
  EXPECT_EQ(LastLines(&fs, "/log", 4, 10), "  one\n  two\n  three\n");
  EXPECT_EQ(LastLines(&fs, "/log", 18, 10), "");
  EXPECT_EQ(LastLines(&fs, "/log", 99, 10), "");
  EXPECT_EQ(LastLines(&fs, "/none", 0, 10), "");
}

}  // namespace
}  // namespace lockstep
