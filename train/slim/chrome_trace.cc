#include "lockstep/train/slim/chrome_trace.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {

std::string ChromeTrace(absl::Span<const TraceEvent> events, absl::Time origin) {
  std::vector<std::string> lines;
  for (const TraceEvent& event : events) {
    lines.push_back(absl::StrCat("{\"name\":", JsonString(event.name), ",\"ph\":\"X\",\"pid\":1,\"tid\":", event.thread,
                                 ",\"ts\":", JsonNumber(absl::ToDoubleMicroseconds(event.begin - origin)),
                                 ",\"dur\":", JsonNumber(absl::ToDoubleMicroseconds(event.end - event.begin)), "}"));
  }
  return absl::StrCat("{\"traceEvents\":[\n", absl::StrJoin(lines, ",\n"), "\n],\"displayTimeUnit\":\"ms\"}\n");
}

}  // namespace lockstep
