#include "lockstep/cli/report/run_status_text.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

v1::RunStatus StatusOf(const char* text) {
  v1::RunStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &status));
  return status;
}

v1::RunStatus Training() {
  return StatusOf(R"(
    phase: TRAINING global_step: 1200 total_steps: 4000 loss: 0.41234 steps_per_second: 310 examples_per_step: 128
    run_id: "3f9c0a51b2e47d86" generation: 3 replicas_to_aggregate: 4 learning_rate: 0.001 logdir: "runs/mlp" checkpoint: "runs/mlp/model.ckpt-1000"
    accepted: 4801 duplicate: 12
    worker { name: "worker-0@host" session_id: 1 step: 1200 first_slot: 0 slot_count: 2 lease_seconds: 4.8
             last_step_seconds: 0.0021 accepted: 2400 duplicate: 12 bytes_received: 6432000000 bytes_sent: 6440000000
             silent_seconds: 0.1 }
    worker { name: "worker-1@host" session_id: 2 step: 1200 first_slot: 3 slot_count: 1 lease_seconds: 4.9 backup: true
             last_step_seconds: 0.0019 accepted: 2401 bytes_received: 6433000000 bytes_sent: 6440000000
             silent_seconds: 0.2 }
    worker { name: "late" session_id: 3 silent_seconds: 12 })");
}

TEST(ProgressLineTest, ShowsStepLossRatesWorkersAndTimeLeft) {
  EXPECT_EQ(ProgressLine(Training(), 100),
            "step 1200/4000  loss 0.4123  310 steps/s  39.7k examples/s  3 workers  ETA 9s");
}

TEST(ProgressLineTest, NarrowTerminalOmitsTheLeastImportant) {
  EXPECT_EQ(ProgressLine(Training(), 76), "step 1200/4000  loss 0.4123  310 steps/s  3 workers  ETA 9s");
  EXPECT_EQ(ProgressLine(Training(), 58), "step 1200/4000  loss 0.4123  310 steps/s  ETA 9s");
  EXPECT_EQ(ProgressLine(Training(), 40), "step 1200/4000  loss 0.4123  ETA 9s");
  EXPECT_EQ(ProgressLine(Training(), 24), "step 1200/4000  ETA 9s");
  EXPECT_EQ(ProgressLine(Training(), 20), "step 1200/4000");
  EXPECT_EQ(ProgressLine(Training(), 9), "step 1200");
}

TEST(ProgressLineTest, OmitsUnknownValues) {
  EXPECT_EQ(ProgressLine(StatusOf("phase: TRAINING total_steps: 10"), 100), "step 0/10  0 workers");
  EXPECT_EQ(ProgressLine(StatusOf("phase: TRAINING total_steps: 10 steps_per_second: 2"), 100),
            "step 0/10  2 steps/s  0 workers");
}

TEST(ProgressLineTest, NamesThePhaseWhenItIsNotTraining) {
  EXPECT_EQ(ProgressLine(StatusOf(""), 100), "waiting for the first worker");
  EXPECT_EQ(ProgressLine(StatusOf("phase: RESTORING checkpoint: 'a/model.ckpt-7'"), 100), "restoring model.ckpt-7");
  EXPECT_EQ(ProgressLine(StatusOf("phase: FINISHED global_step: 10 total_steps: 10"), 100), "finished at step 10/10");
  EXPECT_EQ(ProgressLine(StatusOf("phase: FINISHED global_step: 7 total_steps: 7 message: 'no more input'"), 100),
            "finished at step 7/7: no more input");
  EXPECT_EQ(ProgressLine(StatusOf("phase: FAILED global_step: 3 total_steps: 10 message: 'loss is nan'"), 100),
            "failed at step 3/10: loss is nan");
}

TEST(StatusReportTest, ShowsTheRunAndATableOfItsWorkers) {
  EXPECT_EQ(StatusReport(Training()),
            R"(training  step 1200/4000 (30%)  310 steps/s  39.7k examples/s  ETA 9s
loss           0.4123
learning rate  0.001
slots a step   4
contributions  4801 accepted, 12 duplicate, 0 rejected
run            3f9c0a51b2e47d86
generation     3
logdir         runs/mlp
checkpoint     runs/mlp/model.ckpt-1000

WORKER         STEP: SLOTS     LEASE  LAST STEP  SILENT  ACCEPTED  DUPLICATE  REJECTED  RECEIVED     SENT
worker-0@host  1200: 0-1       4.8 s     2.1 ms  100 ms      2400         12         0   6.43 GB  6.44 GB
worker-1@host  1200: 3 (copy)  4.9 s     1.9 ms  200 ms      2401          0         0   6.43 GB  6.44 GB
late           waits               -          -    12 s         0          0         0       0 B      0 B
)");
}

TEST(StatusReportTest, ShowsWhichContributionsWereStale) {
  const std::string report = StatusReport(
      StatusOf("phase: TRAINING global_step: 9 total_steps: 40 policy: 'FIRST_ARRIVALS' accepted: 18 stale: 3 worker { "
               "name: 'w' step: 9 slot_count: 1 stream: 1 position: 7 lease_seconds: 4 accepted: 8 stale: 3 }"));
  EXPECT_NE(report.find("contributions  18 accepted, 0 duplicate, 3 stale, 0 rejected\n"), std::string::npos) << report;
  EXPECT_NE(report.find("WORKER  STEP: BATCH       LEASE  LAST STEP  SILENT  ACCEPTED  STALE  DUPLICATE  REJECTED"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("w       9: 7 of stream 1    4 s          -"), std::string::npos) << report;
}

TEST(StatusReportTest, ShowsTheBytesOfAStep) {
  EXPECT_NE(StatusReport(StatusOf("phase: TRAINING total_steps: 10 bytes_received_per_step: 2679500.25 "
                                  "bytes_sent_per_step: 5359000"))
                .find("bytes a step   2.68 MB received, 5.36 MB sent\n"),
            std::string::npos);
}

TEST(StatusReportTest, ShowsMetricsBelowLoss) {
  const std::string report = StatusReport(
      StatusOf("loss: 0.5 metric { name: 'accuracy' value: 0.91 } metric { name: 'a_name_of_20_letters' value: 2 }"));
  EXPECT_NE(report.find("loss           0.5\n"
                        "accuracy       0.91\n"
                        "a_name_of_20_letters  2\n"
                        "learning rate"),
            std::string::npos)
      << report;
}

TEST(StatusReportTest, ShowsStepsThatWereSkipped) {
  EXPECT_NE(StatusReport(StatusOf("skipped_steps: 3")).find("skipped steps  3: not finite\n"), std::string::npos);
  EXPECT_EQ(StatusReport(StatusOf("")).find("skipped"), std::string::npos);
}

TEST(StatusReportTest, ShowsTheBuildOfTheChief) {
  EXPECT_NE(StatusReport(StatusOf("build { version: '1.2.3' arithmetic_version: 4 }"))
                .find("build          1.2.3, arithmetic version 4\n"),
            std::string::npos);
  EXPECT_NE(StatusReport(StatusOf("build { version: '1.2.3' revision: '1a2b3c4' arithmetic_version: 4 }"))
                .find("build          1.2.3 (revision 1a2b3c4), arithmetic version 4\n"),
            std::string::npos);
  EXPECT_NE(StatusReport(StatusOf("host: 'a' build { version: '1.2.3' arithmetic_version: 4 instruction_set: 'AVX2' }"))
                .find("build          1.2.3, arithmetic version 4, AVX2, on a\n"),
            std::string::npos);
}

TEST(StatusReportTest, ShowsTheBuildsOfTheWorkers) {
  const std::string report = StatusReport(
      StatusOf("host: 'a' build { version: '1.2.3' arithmetic_version: 4 } worker { name: 'w' host: 'b' address: "
               "'10.0.0.7:4321' build { "
               "version: '1.2.3' revision: '1a2b3c4' compiler: 'GCC 12.2.0' instruction_set: 'AVX-512' } }"));
  EXPECT_NE(report.find("build          1.2.3, arithmetic version 4, on a\n"), std::string::npos) << report;
  EXPECT_NE(report.find("\n\nWORKER  HOST  ADDRESS        BUILD                     COMPILER    INSTRUCTIONS\n"
                        "w       b     10.0.0.7:4321  1.2.3 (revision 1a2b3c4)  GCC 12.2.0  AVX-512\n"),
            std::string::npos)
      << report;
}

TEST(StatusReportTest, AWorkerWithoutABuildHasTheChiefs) {
  const std::string report = StatusReport(StatusOf(
      "build { version: '1.2.3' compiler: 'GCC 12.2.0' instruction_set: 'AVX2' } worker { name: 'w' host: 'b' }"));
  EXPECT_NE(report.find("w       b              1.2.3  GCC 12.2.0  AVX2\n"), std::string::npos) << report;
}

TEST(StatusReportTest, ShowsTheAuditsFindings) {
  std::string report = StatusReport(StatusOf("audit { compared: 12 abandoned: 1 missed: 3 }"));
  EXPECT_NE(
      report.find("audit          12 compared, 0 different, 1 without a second copy, 3 without a second worker\n\nno"),
      std::string::npos)
      << report;
  report = StatusReport(StatusOf("audit { compared: 12 differences: 1 last_difference: 'step 4, slot 0: ...' }"));
  EXPECT_NE(
      report.find(
          "1 different, 0 without a second copy, 0 without a second worker\n               step 4, slot 0: ...\n"),
      std::string::npos)
      << report;
  EXPECT_EQ(StatusReport(StatusOf("")).find("audit"), std::string::npos);
}

TEST(StatusReportTest, ShowsTheErrorOfAFailedRun) {
  EXPECT_EQ(StatusReport(StatusOf("phase: FAILED global_step: 3 total_steps: 10 message: 'the loss of step 3 is nan' "
                                  "logdir: 'd' replicas_to_aggregate: 1 generation: 1 learning_rate: 0.1")),
            R"(failed  step 3/10 (30%)
the loss of step 3 is nan
learning rate  0.1
slots a step   1
contributions  0 accepted, 0 duplicate, 0 rejected
generation     1
logdir         d
checkpoint     none yet

no workers
)");
}

TEST(StatusJsonTest, NamesFieldsAsTheProtoAndShowsZeros) {
  const std::string json = StatusJson(StatusOf("phase: TRAINING total_steps: 10"));
  EXPECT_NE(json.find("\"phase\": \"TRAINING\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"global_step\": 0,"), std::string::npos) << json;
  EXPECT_EQ(json.find("\"loss\""), std::string::npos) << json;
  EXPECT_EQ(json.back(), '\n');
}

}  // namespace
}  // namespace lockstep
