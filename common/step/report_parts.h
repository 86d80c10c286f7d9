#ifndef LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
#define LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Maximum bytes of the summaries and metrics of a slot, in addition to those of its gradients.
constexpr int64_t kMaxSummaryBytes = 64 << 10;
// Maximum bytes of an AddSummaryRequest.
constexpr int64_t kMaxSummaryRequestBytes = 1 << 20;

// Returns the maximum bytes of all summaries and metrics of a slot: kMaxSummaryBytes, and the maximum of a histogram
// and a norm for each trainable variable's gradient.
int64_t MaxSummaryBytes(const ParameterLayout& layout);

// Splits a contribution's reports into lists of about `bytes` at most, one per frame, in order. A larger report is
// split too (SlotReport.continued).
std::vector<std::vector<v1::SlotReport>> CutReports(absl::Span<const v1::SlotReport> reports, int64_t bytes);

// The inverse of CutReports: collects a contribution's reports, or parts of them, as they arrive. Rejects more reports
// than the block has, and more values than the model has. All errors are InvalidArgument and name the mismatch. Not
// thread-safe.
class ReportJoiner {
 public:
  struct Options {
    int64_t reports = 0;  // slots of the block
    // Number of update values per report, and their total bytes.
    int64_t updates = 0;
    int64_t update_bytes = 0;
    // Maximum bytes of a report's summary and metrics.
    int64_t summary_bytes = kMaxSummaryBytes;
  };

  // Starts a new contribution.
  void Begin(const Options& options);
  // Adds the next report or part. If not `keep`, checks it and drops it.
  absl::Status Add(const v1::SlotReport& part, bool keep);
  // True if all reports have arrived completely.
  bool complete() const { return begun_ == options_.reports && !open_; }
  // Number of reports begun.
  int64_t begun() const { return begun_; }
  // Returns the kept reports.
  std::vector<v1::SlotReport> Take();

 private:
  Options options_;
  int64_t begun_ = 0;
  // True if the last report continues.
  bool open_ = false;
  // Slot of the last report, and its update values and summary so far.
  int64_t slot_ = 0;
  int64_t updates_ = 0;
  int64_t update_bytes_ = 0;
  int64_t summary_bytes_ = 0;
  std::vector<v1::SlotReport> reports_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_REPORT_PARTS_H_
