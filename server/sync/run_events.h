#ifndef LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_
#define LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/machine/run_event.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// A committed step.
struct CommittedStep {
  v1::StepCommit commit;
  absl::Time time;
  // The serialized summaries of the step's slots, in slot order.
  std::vector<std::string> summaries;
  // The metrics of the step's slots, in slot order.
  std::vector<SlotMetrics> metrics;
  // See StepShard::Committed.
  absl::optional<UpdateNorms> norms;
  // True if the run ends with this step.
  bool last = false;
};

// Receives the events of a run. Each function is called on the thread that caused the event, with no lock held except
// RunState::change_mutex. Calls may overlap. The base class ignores all events.
class RunEvents {
 public:
  virtual ~RunEvents() = default;
  virtual void OnEvent(const RunEvent& event) {}
  // Called for every step, before the last step's kFinished. Calls for two consecutive steps may overlap.
  virtual void OnCommitted(const CommittedStep& committed) {}
  // Receives a snapshot that must be saved.
  virtual void OnSnapshot(VariableSnapshot snapshot) {}
};

// Writes the event's line to the log, if it has one.
void Log(const RunEvent& event);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_RUN_EVENTS_H_
