#ifndef LOCKSTEP_COMMON_BASE_PROCESS_JSON_LOG_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_JSON_LOG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The help text of --log_format.
extern const char kLogFormatHelp[];

// Sets the format of the process's log on stderr: "text" as glog writes it, or "json", one object per line with `time`
// (RFC 3339 with the zone), `severity`, `role`, `process`, `file`, `line`, `message`, and the fields below. Call this
// once, before any thread logs. Returns InvalidArgument for any other format.
absl::Status SetLogFormat(absl::string_view format, const std::string& role);
// Returns true after SetLogFormat("json").
bool LogsJson();

// Adds a field to every later line of the process. `json` is a JSON value. Thread-safe.
void SetLogField(const std::string& name, const std::string& json);

// Adds fields to the lines that this thread logs during the object's lifetime. Values are JSON.
class LogFields {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  explicit LogFields(Fields fields);
  ~LogFields();
  LogFields(const LogFields&) = delete;
  LogFields& operator=(const LogFields&) = delete;

 private:
  const Fields fields_;
  const Fields* const before_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_JSON_LOG_H_
