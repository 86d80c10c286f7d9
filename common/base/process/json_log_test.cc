#include "lockstep/common/base/process/json_log.h"

#include <string>

#include "glog/logging.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns what `log` writes to stderr.
template <typename Log>
std::string LinesOf(const Log& log) {
  ::testing::internal::CaptureStderr();
  log();
  return ::testing::internal::GetCapturedStderr();
}

TEST(JsonLogTest, ALineIsAnObject) {
  // InitializeProcess does the same. Until then glog writes text to stderr, whatever its flags say.
  google::InitGoogleLogging("json_log_test");
  EXPECT_EQ(SetLogFormat("xml", "chief").message(), "--log_format is text or json, not \"xml\"");
  ASSERT_TRUE(SetLogFormat("text", "chief").ok());
  EXPECT_FALSE(LogsJson());
  ASSERT_TRUE(SetLogFormat("json", "chief").ok());
  EXPECT_TRUE(LogsJson());
  SetLogField("generation", "3");
  const std::string line = LinesOf([] {
    const LogFields fields({{"event", "\"saved\""}, {"step", "7"}});
    LOG(WARNING) << "a \"quoted\"\nmessage";
  });
  EXPECT_NE(line.find("{\"time\":\"20"), std::string::npos) << line;
  EXPECT_NE(line.find("\"severity\":\"warning\",\"role\":\"chief\",\"process\":"), std::string::npos) << line;
  EXPECT_NE(
      line.find(",\"generation\":3,\"event\":\"saved\",\"step\":7,\"message\":\"a \\\"quoted\\\"\\u000amessage\"}\n"),
      std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line, and nothing in the other format";
  const std::string next = LinesOf([] { LOG(INFO) << "next"; });
  EXPECT_EQ(next.find("event"), std::string::npos) << "the fields end with their scope: " << next;
}

}  // namespace
}  // namespace lockstep
