#include "lockstep/cli/page/recorded_view.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/event_writer.h"

namespace lockstep {
namespace {

constexpr char kJournal[] =
    R"({"event":{"number":1,"kind":"chief_started","worker":"host-1","text":"the chief started on host-1","generation":1}}
{"point":{"step":1,"steps":1,"loss":2.5}}
{"point":{"step":2,"steps":1,"loss":2.25}}
{"event":{"number":2,"kind":"restored","recomputed_steps":5,"generation":2}}
)";

class RecordedViewTest : public ::testing::Test {
 protected:
  RecordedViewTest() { EXPECT_TRUE(fs_.CreateDirectory("/run").ok()); }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
};

TEST_F(RecordedViewTest, AFolderWithoutARunIsAnError) {
  EXPECT_EQ(ReadRecordedRun(&fs_, "/run").status(), absl::NotFoundError("there is no run in /run"));
}

TEST_F(RecordedViewTest, HasTheContentsOfTheFolder) {
  v1::RunRecord record;
  record.set_run_id("abc");
  record.mutable_config()->mutable_training()->set_steps(2);
  record.set_finished(true);
  ASSERT_TRUE(WriteRunRecord(&fs_, "/run", record).ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/events.jsonl", kJournal).ok());
  const auto run = ReadRecordedRun(&fs_, "/run");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->status().phase(), v1::RunStatus::FINISHED);
  EXPECT_EQ(run->status().run_id(), "abc");
  EXPECT_EQ(run->status().global_step(), 2);
  EXPECT_EQ(run->status().total_steps(), 2);
  EXPECT_EQ(run->status().loss(), 2.25);
  EXPECT_EQ(run->status().generation(), 2);
  EXPECT_EQ(run->status().host(), "host-1");
  EXPECT_EQ(run->point_size(), 2);
  EXPECT_EQ(run->event_size(), 2);
  EXPECT_EQ(run->counters().recomputed_steps(), 5);
}

TEST_F(RecordedViewTest, ReadsTheScalarsOfEvaluations) {
  for (const std::string& split : std::vector<std::string>{"/run/eval", "/run/eval_train", "/run/other"}) {
    ASSERT_TRUE(fs_.CreateDirectory(split).ok());
    auto events = EventWriter::Create(&fs_, &clock_, split, "host");
    ASSERT_TRUE(events.ok()) << events.status();
    (*events)->WriteScalar("accuracy", 0.5f, 10);
    (*events)->WriteScalar("accuracy", 0.75f, 5);
    ASSERT_TRUE((*events)->Close().ok());
  }
  const std::vector<EvaluationPoint> points = ReadEvaluations(&fs_, "/run");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].step, 5);
  EXPECT_EQ(points[0].split, "evaluation");
  EXPECT_EQ(points[0].metric, "accuracy");
  EXPECT_EQ(points[0].value, 0.75);
  EXPECT_EQ(points[1].split, "train");
  EXPECT_EQ(points[3].step, 10);
}

TEST_F(RecordedViewTest, ALargeCheckpointGetsNoDigest) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/model.ckpt-1.data-00000-of-00001", std::string(2000, 'x')).ok());
  EXPECT_EQ(DigestOfCheckpoint(&fs_, "/run/model.ckpt-1", 1000).status().message(),
            "/run/model.ckpt-1 has 2000 bytes; at most 1000 are read for a digest");
}

}  // namespace
}  // namespace lockstep
