#include "lockstep/server/sync/run_events.h"

#include <string>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/json_log.h"

namespace lockstep {
namespace {

std::string LineOf(const RunEvent& event) {
  ::testing::internal::CaptureStderr();
  Log(event);
  return ::testing::internal::GetCapturedStderr();
}

TEST(RunEventsTest, LinesOfJsonNameTheEvent) {
  google::InitGoogleLogging("run_events_test");
  ASSERT_TRUE(SetLogFormat("json", "chief").ok());
  const std::string saved = LineOf({RunEvent::kSaved, 7, "", "d/model.ckpt-7"});
  EXPECT_NE(saved.find("\"event\":\"saved\",\"step\":7,\"worker\":\"\",\"message\":\"saved d/model.ckpt-7\"}\n"),
            std::string::npos)
      << saved;
  const std::string left = LineOf({RunEvent::kLeft, 7, "worker-1"});
  EXPECT_NE(left.find("\"event\":\"worker_left\",\"step\":7,\"worker\":\"worker-1\",\"message\":\"worker_left\"}\n"),
            std::string::npos)
      << "an event without a line for people: " << left;
  EXPECT_EQ(LineOf({RunEvent::kRoom, 7}), "");
}

}  // namespace
}  // namespace lockstep
