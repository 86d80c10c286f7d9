#include "lockstep/server/sync/run_events.h"

#include "glog/logging.h"

namespace lockstep {

void Log(const RunEvent& event) {
  const std::string line = ToString(event);
  if (line.empty()) return;
  switch (event.kind) {
    case RunEvent::kDeclared:
    case RunEvent::kJoined:
    case RunEvent::kSaved:
    case RunEvent::kSavedBefore:
    case RunEvent::kChanged:
    case RunEvent::kEndRecorded:
    case RunEvent::kLingers:
      LOG(INFO) << line;
      return;
    case RunEvent::kSaveFailed:
    case RunEvent::kEventsMissing:
    case RunEvent::kEndUnrecorded:
    case RunEvent::kFailed:
      LOG(ERROR) << line;
      return;
    default:
      LOG(WARNING) << line;
  }
}

}  // namespace lockstep
