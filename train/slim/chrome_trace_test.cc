#include "lockstep/train/slim/chrome_trace.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ChromeTraceTest, IsOneCompleteEventForEachSpan) {
  const absl::Time origin = absl::UnixEpoch();
  const TraceEvent events[] = {
      {"compute", origin + absl::Microseconds(2), origin + absl::Microseconds(5) + absl::Nanoseconds(500), 1},
      {"wait", origin, origin + absl::Milliseconds(1), 2}};
  EXPECT_EQ(ChromeTrace(events, origin),
            "{\"traceEvents\":[\n"
            "{\"name\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":3.5},\n"
            "{\"name\":\"wait\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":0,\"dur\":1000}\n"
            "],\"displayTimeUnit\":\"ms\"}\n");
  EXPECT_EQ(ChromeTrace({}, origin), "{\"traceEvents\":[\n\n],\"displayTimeUnit\":\"ms\"}\n");
}

}  // namespace
}  // namespace lockstep
