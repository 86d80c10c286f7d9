#ifndef LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_
#define LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Says what to write while a run is in progress. On a terminal: one line that is written over and over. Elsewhere: a
// line when the phase changes, at every tenth of the steps, and every five seconds. Writes nothing itself: every call
// returns the text to write, which may be empty. Not thread-safe.
class RunProgress {
 public:
  // `columns`: of the terminal, one of which stays free.
  RunProgress(bool terminal, size_t columns) : terminal_(terminal), columns_(columns) {}

  // Nothing for a finished run: the caller says so.
  std::string Show(const v1::RunStatus& status, absl::Time now);

  // A message on lines of its own; the live line comes back with the next Show.
  std::string Say(absl::string_view message);

  // The live line stays as it is and the cursor goes below it.
  std::string Finish();

 private:
  const bool terminal_;
  const size_t columns_;
  // Terminal: the cursor is in the live line.
  bool in_line_ = false;
  // Elsewhere: of the last line.
  absl::Time line_time_ = absl::InfinitePast();
  int phase_ = -1;
  int64_t tenth_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_RUN_PROGRESS_H_
