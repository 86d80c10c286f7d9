#ifndef LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_
#define LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Formats a run's progress. On a terminal, it is one line that is overwritten. Elsewhere, it is a new line when the
// phase changes, at every tenth of the steps, and every five seconds. Writes nothing itself: every call returns the
// text to write, which may be empty. Not thread-safe.
class RunProgress {
 public:
  // `columns` is the terminal's width; one column stays free.
  RunProgress(bool terminal, size_t columns) : terminal_(terminal), columns_(columns) {}

  // Returns the text that shows the status. It is empty for a finished run, because the caller reports the end.
  std::string Show(const v1::RunStatus& status, absl::Time now);

  // Returns the text that prints a message on lines of its own. The next Show brings back the live line.
  std::string Say(absl::string_view message);

  // Leaves the live line unchanged and moves the cursor below it.
  std::string Finish();

 private:
  const bool terminal_;
  const size_t columns_;
  // True if the cursor is on the live line of a terminal.
  bool in_line_ = false;
  // The time, phase and tenth of the last line, if not on a terminal.
  absl::Time line_time_ = absl::InfinitePast();
  int phase_ = -1;
  int64_t tenth_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_
