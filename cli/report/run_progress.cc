#include "lockstep/cli/report/run_progress.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/report/run_status_text.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLineEvery = absl::Seconds(5);
// Erases from the cursor to the end of the line.
constexpr char kErase[] = "\r\x1b[K";

}  // namespace

std::string RunProgress::Show(const v1::RunStatus& status, absl::Time now) {
  if (status.phase() == v1::RunStatus::FINISHED) return "";
  if (terminal_) {
    in_line_ = true;
    return absl::StrCat(kErase, ProgressLine(status, columns_ > 1 ? columns_ - 1 : 1));
  }
  const int64_t tenth = status.total_steps() > 0 ? 10 * status.global_step() / status.total_steps() : 0;
  const bool due = status.phase() != phase_ || tenth > tenth_ || now - line_time_ >= kLineEvery;
  if (!due) return "";
  line_time_ = now;
  phase_ = status.phase();
  tenth_ = tenth;
  return absl::StrCat(ProgressLine(status, std::numeric_limits<size_t>::max()), "\n");
}

std::string RunProgress::Say(absl::string_view message) {
  const bool erase = in_line_;
  in_line_ = false;
  return absl::StrCat(erase ? kErase : "", message, "\n");
}

std::string RunProgress::Finish() {
  const bool in_line = in_line_;
  in_line_ = false;
  return in_line ? "\n" : "";
}

}  // namespace lockstep
