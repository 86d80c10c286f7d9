#include "lockstep/server/sync/run_events.h"

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/json_log.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {

void Log(const RunEvent& event) {
  std::string line = ToString(event);
  // The JSON log, which is read by programs, also gets events that have no line for users.
  if (line.empty() && LogsJson() && event.kind != RunEvent::kRoom) line = NameOf(event.kind);
  if (line.empty()) return;
  absl::optional<LogFields> fields;
  if (LogsJson()) {
    fields.emplace(LogFields::Fields{{"event", JsonString(NameOf(event.kind))},
                                     {"step", absl::StrCat(event.step)},
                                     {"worker", JsonString(event.worker)}});
  }
  switch (SeverityOf(event.kind)) {
    case EventSeverity::kInfo:
      LOG(INFO) << line;
      return;
    case EventSeverity::kWarning:
      LOG(WARNING) << line;
      return;
    case EventSeverity::kError:
      LOG(ERROR) << line;
  }
}

}  // namespace lockstep
