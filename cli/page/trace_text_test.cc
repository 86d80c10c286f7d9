#include "lockstep/cli/page/trace_text.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

v1::WatchRunReply ExampleReply() {
  v1::WatchRunReply reply;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(commit { begun: 1 committed: 2 step: 7 }
         commit { begun: 2 committed: 3 step: 8 }
         contribution {
           arrived: 1.5 worker: "a" step: 6 slot_count: 1
           times { batch: 0.1 compute: 0.2 }
         }
         contribution {
           arrived: 2.5 worker: "a" step: 7 slot_count: 2
           times { batch: 0.125 compute: 0.25 send: 0.0625 wait: 0.5 }
         })",
      &reply));
  return reply;
}

TEST(StepTraceTest, PhasesEndAtTheArrival) {
  StepTrace trace;
  trace.Add(ExampleReply());
  EXPECT_EQ(trace.steps(), 2u);
  EXPECT_EQ(trace.Text(1), R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"chief"}},
{"ph":"M","pid":1,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":1,"tid":0,"name":"step 8","ts":2000000.000,"dur":1000000.000,"args":{"step":8}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"a"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"X","pid":1,"tid":1,"name":"send","ts":2437500.000,"dur":62500.000,"args":{"step":7,"first_slot":0,"slot_count":2}},
{"ph":"X","pid":1,"tid":1,"name":"compute","ts":2187500.000,"dur":250000.000,"args":{"step":7,"first_slot":0,"slot_count":2}},
{"ph":"X","pid":1,"tid":1,"name":"batch","ts":2062500.000,"dur":125000.000,"args":{"step":7,"first_slot":0,"slot_count":2}},
{"ph":"X","pid":1,"tid":1,"name":"wait","ts":1562500.000,"dur":500000.000,"args":{"step":7,"first_slot":0,"slot_count":2}}
]}
)");
}

TEST(StepTraceTest, ATraceWithoutStepsIsWellFormed) {
  EXPECT_EQ(StepTrace().Text(20), R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"chief"}},
{"ph":"M","pid":1,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}}
]}
)");
}

}  // namespace
}  // namespace lockstep
