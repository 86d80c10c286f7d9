#ifndef LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
#define LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Of a SlotReport.
constexpr int64_t kMaxSummaryBytes = 64 << 10;

// A contribution's reports in lists, one for each frame, of about `bytes` at most, in order: a report that has more
// is cut (SlotReport.continued).
std::vector<std::vector<v1::SlotReport>> CutReports(absl::Span<const v1::SlotReport> reports, int64_t bytes);

// The reverse: takes a contribution's reports, or parts of them, as they come, and refuses more than the block and the
// model have. Errors are InvalidArgument and name what disagrees. Not thread-safe.
class ReportJoiner {
 public:
  struct Options {
    int64_t reports = 0;  // slots of the block
    // The number of update values of each report, and their bytes.
    int64_t updates = 0;
    int64_t update_bytes = 0;
  };

  // Forgets what came.
  void Begin(const Options& options);
  // The next of them. Without `keep` they are checked and dropped.
  absl::Status Add(const v1::SlotReport& part, bool keep);
  // All have come, whole.
  bool complete() const { return begun_ == options_.reports && !open_; }
  // How many have begun.
  int64_t begun() const { return begun_; }
  // Those that were kept.
  std::vector<v1::SlotReport> Take();

 private:
  Options options_;
  int64_t begun_ = 0;
  // The last one continues.
  bool open_ = false;
  // Of the last one.
  int64_t slot_ = 0;
  int64_t updates_ = 0;
  int64_t update_bytes_ = 0;
  std::vector<v1::SlotReport> reports_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
