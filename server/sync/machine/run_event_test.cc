#include "lockstep/server/sync/machine/run_event.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RunEventTest, AnEventIsALineOfTheLog) {
  RunEvent event;
  event.kind = RunEvent::kLeaseEnded;
  event.step = 17;
  event.worker = "worker-1 on host-1";
  event.block = {4, 2};
  event.time = absl::Seconds(2);
  EXPECT_EQ(ToString(event), "worker-1 on host-1 was silent for 2s: slots [4,6) of step 17 go to another worker");
  EXPECT_EQ(ToString({RunEvent::kJoined, 0, "worker-1", "1f"}), "worker-1 opened session 1f");
  EXPECT_EQ(ToString({RunEvent::kSaved, 3, "", "logdir/model.ckpt-3"}), "saved logdir/model.ckpt-3");
  EXPECT_EQ(ToString({RunEvent::kEndRecorded, 3, "", "enough"}), "the run is to end at step 3: enough");
  EXPECT_EQ(ToString({RunEvent::kSavedBefore, 3}), "step 3 is saved already");
  EXPECT_EQ(ToString({RunEvent::kEndUnrecorded, 0, "", "the run continues", absl::DataLossError("no space")}),
            "the run continues: no space");
  EXPECT_EQ(ToString({RunEvent::kFailed, 0, "", "", absl::DataLossError("two copies differ")}),
            "the run stops: two copies differ");
}

TEST(RunEventTest, SomeEventsAreForOtherListenersThanTheLog) {
  for (const RunEvent::Kind kind : {RunEvent::kLeft, RunEvent::kRoom, RunEvent::kFinished, RunEvent::kLogdirLost}) {
    EXPECT_EQ(ToString({kind, 3, "worker-1", "text"}), "");
  }
}

}  // namespace
}  // namespace lockstep
