#ifndef LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_
#define LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/machine/run_event.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// One step that was committed.
struct CommittedStep {
  v1::StepCommit commit;
  // The summaries of its slots, in order; serialized.
  std::vector<std::string> summaries;
  // The metrics of its slots, in order.
  std::vector<SlotMetrics> metrics;
  // StepShard::Committed.
  absl::optional<UpdateNorms> norms;
  // The run ends here.
  bool last = false;
};

// Receives what happens to a run. Each call comes from the thread that caused it, without locks but
// RunState::change_mutex; calls may overlap. Ignores everything itself.
class RunEvents {
 public:
  virtual ~RunEvents() = default;
  virtual void OnEvent(const RunEvent& event) {}
  // Every step, before the kFinished of the last one. Calls for two consecutive steps may overlap.
  virtual void OnCommitted(const CommittedStep& committed) {}
  // The snapshot is to be saved.
  virtual void OnSnapshot(VariableSnapshot snapshot) {}
};

// Writes the event's line into the log, if it has one.
void Log(const RunEvent& event);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_
