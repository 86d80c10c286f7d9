#include "lockstep/server/sync/machine/run_event.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

// Truncates a time below 10 s to milliseconds, and a longer one to tenths of a second.
absl::Duration Rounded(absl::Duration time) {
  return absl::Trunc(time, time < absl::Seconds(10) ? absl::Milliseconds(1) : absl::Milliseconds(100));
}

}  // namespace

std::string ToString(const RunEvent& event) {
  switch (event.kind) {
    case RunEvent::kDeclared:
      return absl::StrCat("the model was declared by ", event.worker, ": ", event.count, " variables");
    case RunEvent::kJoined:
      return absl::StrCat(event.worker, " opened session ", event.text);
    case RunEvent::kRefused:
      return absl::StrCat("a worker is refused: ", event.status.message());
    case RunEvent::kSlow:
      return absl::StrCat(event.worker, " is slow: it needs ", absl::FormatDuration(Rounded(event.time)),
                          " longer for each slot than the other workers (", absl::StrFormat("%.1f", event.factor),
                          " times as long)");
    case RunEvent::kLeaseEnded:
      return absl::StrCat(event.worker, " was silent for ", absl::FormatDuration(event.time), ": ",
                          event.text.empty() ? absl::StrCat(DescribeBlock(event.step, event.block), " go")
                                             : absl::StrCat(event.text, " goes"),
                          " to another worker");
    case RunEvent::kBlockDropped:
      return absl::StrCat(event.worker, " drops ", DescribeBlock(event.step, event.block),
                          ", which wait for slots that nobody brings, and computes those");
    case RunEvent::kPlaceTaken:
      return absl::StrCat(event.worker, " has sent nothing for ", absl::FormatDuration(event.time),
                          " while other workers wait for room: its contribution to ", event.text, " is dropped");
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
    case RunEvent::kStarted:
    case RunEvent::kRestored:
    case RunEvent::kDamaged:
    case RunEvent::kLeft:
    case RunEvent::kRoom:
    case RunEvent::kFinished:
    case RunEvent::kLogdirLost:
      return "";
  }
  return "";
}

EventSeverity SeverityOf(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::kStarted:
    case RunEvent::kRestored:
    case RunEvent::kDeclared:
    case RunEvent::kJoined:
    case RunEvent::kLeft:
    case RunEvent::kRoom:
    case RunEvent::kSaved:
    case RunEvent::kSavedBefore:
    case RunEvent::kChanged:
    case RunEvent::kEndRecorded:
    case RunEvent::kFinished:
    case RunEvent::kLingers:
      return EventSeverity::kInfo;
    case RunEvent::kSaveFailed:
    case RunEvent::kEventsMissing:
    case RunEvent::kEndUnrecorded:
    case RunEvent::kFailed:
    case RunEvent::kLogdirLost:
      return EventSeverity::kError;
    default:
      return EventSeverity::kWarning;
  }
}

const char* NameOf(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::kStarted:
      return "chief_started";
    case RunEvent::kRestored:
      return "restored";
    case RunEvent::kDamaged:
      return "checkpoint_damaged";
    case RunEvent::kDeclared:
      return "model_declared";
    case RunEvent::kJoined:
      return "worker_joined";
    case RunEvent::kRefused:
      return "worker_refused";
    case RunEvent::kSlow:
      return "worker_slow";
    case RunEvent::kLeft:
      return "worker_left";
    case RunEvent::kLeaseEnded:
      return "lease_expired";
    case RunEvent::kBlockDropped:
      return "block_dropped";
    case RunEvent::kPlaceTaken:
      return "place_taken";
    case RunEvent::kUnread:
      return "replies_unread";
    case RunEvent::kOldValues:
      return "old_values";
    case RunEvent::kAuditDifference:
      return "audit_mismatch";
    case RunEvent::kSkipped:
      return "step_skipped";
    case RunEvent::kRoom:
      return "room_for_snapshot";
    case RunEvent::kSaved:
      return "saved";
    case RunEvent::kSaveFailed:
      return "save_failed";
    case RunEvent::kNotSaved:
      return "not_saved";
    case RunEvent::kSavedBefore:
      return "saved_before";
    case RunEvent::kSaveRetried:
      return "save_retried";
    case RunEvent::kEventsMissing:
      return "summaries_missing";
    case RunEvent::kChanged:
      return "settings_changed";
    case RunEvent::kEndRecorded:
      return "end_requested";
    case RunEvent::kEndUncertain:
      return "end_uncertain";
    case RunEvent::kEndUnrecorded:
      return "end_unrecorded";
    case RunEvent::kEndsDeserted:
      return "ends_deserted";
    case RunEvent::kEndsNonFinite:
      return "ends_non_finite";
    case RunEvent::kFinished:
      return "finished";
    case RunEvent::kLingers:
      return "lingers";
    case RunEvent::kFailed:
      return "failed";
    case RunEvent::kLogdirLost:
      return "logdir_lost";
  }
  return "";
}

}  // namespace lockstep
