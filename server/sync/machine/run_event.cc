#include "lockstep/server/sync/machine/run_event.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

std::string ToString(const RunEvent& event) {
  switch (event.kind) {
    case RunEvent::kDeclared:
      return absl::StrCat("the model was declared by ", event.worker, ": ", event.count, " variables");
    case RunEvent::kJoined:
      return absl::StrCat(event.worker, " opened session ", event.text);
    case RunEvent::kRefused:
      return absl::StrCat("a worker is refused: ", event.status.message());
    case RunEvent::kLeaseEnded:
      return absl::StrCat(event.worker, " was silent for ", absl::FormatDuration(event.time), ": ",
                          DescribeBlock(event.step, event.block), " go to another worker");
    case RunEvent::kBlockDropped:
      return absl::StrCat(event.worker, " drops ", DescribeBlock(event.step, event.block),
                          ", which wait for slots that nobody brings, and computes those");
    case RunEvent::kUnread:
      return absl::StrCat(event.worker, " has not read its replies for ", absl::FormatDuration(event.time),
                          ": its stream is ended");
    case RunEvent::kOldValues:
      return absl::StrCat(event.worker, " still reads the values of a step that was over some steps before step ",
                          event.step, ", as others do of later ones: its stream is ended");
    case RunEvent::kAuditDifference:
      return event.text;
    case RunEvent::kSkipped:
      return absl::StrCat("step ", event.step, " counts, and changes nothing else: the ", event.text,
                          " is not finite (skipped since the start: ", event.count, ")");
    case RunEvent::kSaved:
      return absl::StrCat("saved ", event.text);
    case RunEvent::kSaveFailed:
      return absl::StrCat("cannot save step ", event.step,
                          ", the checkpoints before are untouched: ", event.status.message());
    case RunEvent::kNotSaved:
      return absl::StrCat("step ", event.step, " is not saved: ", event.text, " is not finite");
    case RunEvent::kSavedBefore:
      return absl::StrCat("step ", event.step, " is saved already");
    case RunEvent::kSaveRetried:
      return "trying again to save the last step";
    case RunEvent::kEventsMissing:
      return "the event file may lack scalars and summaries of the last steps";
    case RunEvent::kChanged:
      return absl::StrCat("settings of the run are others from step ", event.step,
                          " on (changes since the start: ", event.count, ")");
    case RunEvent::kEndRecorded:
      return absl::StrCat("the run is to end at step ", event.step, ": ", event.text);
    case RunEvent::kEndUncertain:
      return std::string(event.status.message());
    case RunEvent::kEndUnrecorded:
      return absl::StrCat(event.text, ": ", event.status.message());
    case RunEvent::kLingers:
      return absl::StrCat("the run is over; workers that start within ", absl::FormatDuration(event.time),
                          " still learn of it");
    case RunEvent::kEndsDeserted:
      return absl::StrCat("the run ends at step ", event.step, ": no worker is at the next step");
    case RunEvent::kEndsNonFinite:
      return absl::StrCat("the run ends before step ", event.step, ": ", event.status.message());
    case RunEvent::kFailed:
      return absl::StrCat("the run stops: ", event.status.message());
    case RunEvent::kLeft:
    case RunEvent::kRoom:
    case RunEvent::kFinished:
    case RunEvent::kLogdirLost:
      return "";
  }
  return "";
}

}  // namespace lockstep
