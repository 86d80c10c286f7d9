#ifndef LOCKSTEP_CLI_PAGE_TESTING_EXAMPLE_FACTS_H_
#define LOCKSTEP_CLI_PAGE_TESTING_EXAMPLE_FACTS_H_

#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/cli/page/run_view.h"

namespace lockstep {

// Returns facts about a run for which every metric has a value.
inline RunView::Facts ExampleFacts() {
  RunView::Facts facts;
  facts.answers = true;
  facts.restarts = 2;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      R"(status {
           phase: TRAINING global_step: 7 total_steps: 10 loss: 0.25 run_id: "ab" metric { name: "accuracy" value: 0.75 }
           gradient_norm: 1.5 stale: 6 audit { compared: 2 }
           worker { name: "worker-\"0\"" accepted: 5 slot_count: 1 }
           worker { name: "worker-1" silent_seconds: 9 }
         }
         worker { name: "worker-\"0\"" total { compute: 1.5 } bucket: [1, 2] bucket_sum: 0.5 }
         worker { name: "worker-1" bucket: [0, 1] }
         counters {
           steps: 7 step_bounds: [0.1, 1] step_bucket: [3, 2, 2] step_seconds_sum: 4.5
           contribution_bounds: 0.1 checkpoint_time_ms: 1500 bytes_received: 70 bytes_sent: 80
           unix_bytes_received: 20 ring_bytes_received: 1 save_bounds: [0.5, 2.5] save_bucket: [1, 2, 0]
           save_seconds_sum: 4.25 checkpoint_period_seconds: 600
           contribution_waits: 4 contributions_waiting: 1 max_partial_sums: 6 memory_needed_bytes: 100
           memory_limit_bytes: 400 certificate_expires_ms: 2500
           calls { method: "Heartbeat" code: "ABORTED" count: 3 } calls { method: "Heartbeat" code: "OK" count: 9 }
         })",
      &facts.last.emplace()));
  return facts;
}

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_TESTING_EXAMPLE_FACTS_H_
