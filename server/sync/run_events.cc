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
    case RunEvent::kChanged:
    case RunEvent::kEndRecorded:
      LOG(INFO) << line;
      return;
    case RunEvent::kSaveFailed:
    case RunEvent::kFailed:
      LOG(ERROR) << line;
      return;
    default:
      LOG(WARNING) << line;
  }
}

}  // namespace lockstep
