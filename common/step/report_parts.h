#ifndef LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
#define LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Maximum size in bytes of a slot's summaries and metrics, not counting those of its gradients.
constexpr int64_t kMaxSummaryBytes = 64 << 10;
// Maximum size in bytes of an AddSummaryRequest.
constexpr int64_t kMaxSummaryRequestBytes = 1 << 20;

// Returns the maximum size in bytes of all summaries and metrics of a slot: kMaxSummaryBytes, plus the maximum for a
// histogram and a norm of each trainable variable's gradient.
int64_t MaxSummaryBytes(const ParameterLayout& layout);

// Splits a contribution's reports into lists of at most about `bytes` bytes each, one list per frame, in order. A
// report that is larger is split too (SlotReport.continued).
std::vector<std::vector<v1::SlotReport>> CutReports(absl::Span<const v1::SlotReport> reports, int64_t bytes);

// The inverse of CutReports: collects a contribution's reports, or parts of them, as they arrive. Rejects more reports
// than the block has, and more values than the model has. All errors are InvalidArgument and name the mismatch. Not
// thread-safe.
class ReportJoiner {
 public:
  struct Options {
    int64_t reports = 0;  // slots of the block
    // Number of update values per report, and their total size in bytes.
    int64_t updates = 0;
    int64_t update_bytes = 0;
    // Maximum size in bytes of a report's summary and metrics.
    int64_t summary_bytes = kMaxSummaryBytes;
  };

  // Starts a new contribution.
  void Begin(const Options& options);
  // Adds the next report, or the next part of one. If `keep` is false, only checks it, and drops the reports kept so
  // far.
  absl::Status Add(const v1::SlotReport& part, bool keep);
  // True if all reports have arrived completely.
  bool complete() const { return begun_ == options_.reports && !open_; }
  // Number of reports begun.
  int64_t begun() const { return begun_; }
  // Returns the kept reports, until Begin or Drop.
  const std::vector<v1::SlotReport>& kept() const { return reports_; }
  // Frees the kept reports, but not the list's memory.
  void Drop() { reports_.clear(); }

 private:
  Options options_;
  int64_t begun_ = 0;
  // True if another part of the last report is expected.
  bool open_ = false;
  // Slot of the last report, and the number and size of its update values and the size of its summary so far.
  int64_t slot_ = 0;
  int64_t updates_ = 0;
  int64_t update_bytes_ = 0;
  int64_t summary_bytes_ = 0;
  std::vector<v1::SlotReport> reports_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
