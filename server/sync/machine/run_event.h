#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_RUN_EVENT_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_RUN_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/step/slot_block.h"

namespace lockstep {

// An event of a run, as data. The comment of each kind names the fields that it uses.
struct RunEvent {
  enum Kind {
    // Events of the chief.
    kStarted,   // the chief, on `worker`, serves the run `text`
    kRestored,  // the run continues at `step` from the checkpoint `text`; `count` steps are recomputed
    kDamaged,   // the checkpoint `text` is damaged and was skipped: `status`; the restore has logged it
    // Events of workers.
    kDeclared,      // `worker` declared the model, which has `count` variables
    kJoined,        // `worker` opened the session `text`
    kRefused,       // a worker was refused with `status`
    kSlow,          // `worker` needs `factor` times as long for a slot as the others, which is `time` longer
    kLeft,          // `worker` closed its stream; `count` are still connected
    kLeaseEnded,    // `worker` was silent for `time`; `block` of `step`, or `text`, goes to another worker
    kBlockDropped,  // `worker` drops `block` of `step`, which waits for slots that no worker computes
    kPlaceTaken,    // `worker` sent nothing for `time` while others waited, so its contribution to `text` is dropped
    kUnread,        // `worker` has read no reply for `time`, and loses its stream
    kOldValues,     // `worker` reads values of a step long before `step`, and loses its stream
    // Events of steps and checkpoints.
    kAuditDifference,  // copies of a slot differ: `text`
    kSkipped,          // `step` changes no value, because `text` is not finite; the `count`-th such step
    kRoom,             // another snapshot may be taken
    kSaved,            // `step` was saved as `text`, which took `time`; `bytes` were written
    kSaveFailed,       // `step` was not saved: `status`; `count` is 0 if no caller waits for the save
    kNotSaved,         // `step` of a failed run is not saved, because `text` is not finite
    kSavedBefore,      // a save of `step` was requested, but it is already saved
    kSaveRetried,      // the save of the last step failed and will be retried
    kEventsMissing,    // the event file may lack scalars and summaries of the last steps
    kChanged,          // the settings of the run change from `step` on, for the `count`th time
    // Events at the end.
    kEndRecorded,    // the run will end at `step`: `text`
    kEndUncertain,   // the run ends, and its end may be on record: `status`
    kEndUnrecorded,  // `text`, because of `status`
    kEndsDeserted,   // the run ends at `step`, because no worker is at the next step
    kEndsNonFinite,  // the run ends before `step`: `status`
    kFinished,       // the run has finished; sent once
    kLingers,        // the run is over; the chief keeps answering for `time`
    kFailed,         // the run cannot continue: `status`; sent once
    kLogdirLost,     // another chief has the logdir: `status`
  };

  Kind kind = kFinished;
  int64_t step = 0;
  std::string worker;  // name and host; for kJoined only the name
  std::string text;
  absl::Status status;
  SlotBlock block;
  absl::Duration time;
  int64_t count = 0;
  int64_t bytes = 0;
  double factor = 0;
};

// Returns the event's log line, or an empty string if it has none.
std::string ToString(const RunEvent& event);

enum class EventSeverity { kInfo, kWarning, kError };
EventSeverity SeverityOf(RunEvent::Kind kind);
// Returns the kind's name in journals and machine-readable logs, such as "lease_expired" (docs/observe.md).
const char* NameOf(RunEvent::Kind kind);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_RUN_EVENT_H_
