#include "lockstep/common/step/report_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Approximate size in bytes of a report without its update values.
constexpr int64_t kReportBytes = 32;
constexpr int64_t kUpdateBytes = 8;

// Maximum number of buckets in a histogram (common/summary/histogram.h). Each bucket has a limit and a count, of 8
// bytes each. Each element occupies at most one bucket, and a run of empty buckets before it adds one more.
constexpr int64_t kHistogramBuckets = 1551;
// Bytes for the other fields of a histogram and of a scalar, and for the text that follows the variable's name in their
// tags.
constexpr int64_t kGradientSummaryBytes = 256;

// Splitter of reports into lists of at most `limit` bytes each.
class Cutter {
 public:
  explicit Cutter(int64_t limit) : limit_(limit), lists_(1) {}

  void Add(const v1::SlotReport& report) {
    const auto metrics = static_cast<int64_t>(report.metrics().size());
    if (left_ < kReportBytes + metrics && !lists_.back().empty()) NextList();
    Begin(report);
    lists_.back().back().set_stop(report.stop());
    if (metrics > 0) lists_.back().back().set_metrics(report.metrics());
    left_ -= metrics;
    AddSummary(report);
    for (const std::string& update : report.update()) AddUpdate(report, update);
  }
  std::vector<std::vector<v1::SlotReport>> Take() { return std::move(lists_); }

 private:
  // Starts a report, or the next part of one.
  void Begin(const v1::SlotReport& report) {
    if (left_ < kReportBytes && !lists_.back().empty()) NextList();
    lists_.back().emplace_back();
    lists_.back().back().set_slot(report.slot());
    lists_.back().back().set_loss(report.loss());
    if (report.has_weight()) lists_.back().back().set_weight(report.weight());
    left_ -= kReportBytes;
  }

  void AddSummary(const v1::SlotReport& report) {
    const std::string& summary = report.summary();
    for (size_t at = 0; at < summary.size();) {
      if (left_ <= 0) {
        lists_.back().back().set_continued(true);
        NextList();
        Begin(report);
      }
      lists_.back().back().set_summary(summary.substr(at, static_cast<size_t>(std::max<int64_t>(left_, 1))));
      at += lists_.back().back().summary().size();
      left_ -= static_cast<int64_t>(lists_.back().back().summary().size());
    }
  }

  void AddUpdate(const v1::SlotReport& report, const std::string& update) {
    size_t at = 0;
    do {
      if (left_ <= kUpdateBytes) {
        // The next part begins with the rest of the previous value, which is empty if this value is new.
        lists_.back().back().set_continued(true);
        NextList();
        Begin(report);
        if (at == 0 && &update != &report.update(0)) lists_.back().back().add_update();
      }
      const int64_t room = std::max<int64_t>(left_ - kUpdateBytes, 1);
      const size_t take = std::min(update.size() - at, static_cast<size_t>(room));
      lists_.back().back().add_update(update.substr(at, take));
      left_ -= kUpdateBytes + static_cast<int64_t>(take);
      at += take;
    } while (at < update.size());
  }

  void NextList() {
    lists_.emplace_back();
    left_ = limit_;
  }

  const int64_t limit_;
  int64_t left_ = limit_;
  std::vector<std::vector<v1::SlotReport>> lists_;
};

}  // namespace

int64_t MaxSummaryBytes(const ParameterLayout& layout) {
  int64_t bytes = kMaxSummaryBytes;
  for (const auto& variable : layout.variables()) {
    if (!variable.spec.trainable()) continue;
    bytes += 16 * std::min(2 * variable.elements + 1, kHistogramBuckets) + kGradientSummaryBytes +
             2 * static_cast<int64_t>(variable.spec.name().size());
  }
  return bytes;
}

std::vector<std::vector<v1::SlotReport>> CutReports(absl::Span<const v1::SlotReport> reports, int64_t bytes) {
  Cutter cutter(bytes);
  for (const v1::SlotReport& report : reports) cutter.Add(report);
  return cutter.Take();
}

void ReportJoiner::Begin(const Options& options) {
  options_ = options;
  begun_ = 0;
  open_ = false;
  reports_.clear();
}

absl::Status ReportJoiner::Add(const v1::SlotReport& part, bool keep) {
  if (open_ && part.slot() != slot_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a report for slot ", part.slot(), " where that of slot ", slot_, " goes on"));
  }
  const bool first = !open_;
  if (first) {
    if (begun_ == options_.reports) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", options_.reports, " reports in a contribution"));
    }
    ++begun_;
    slot_ = part.slot();
    updates_ = update_bytes_ = summary_bytes_ = 0;
  }
  summary_bytes_ += static_cast<int64_t>(part.summary().size() + part.metrics().size());
  if (summary_bytes_ > options_.summary_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", slot_, " has summaries of ", summary_bytes_,
                                                   " bytes; at most ", options_.summary_bytes, " are allowed"));
  }
  const bool joins = !first && updates_ > 0 && part.update_size() > 0;
  updates_ += part.update_size() - (joins ? 1 : 0);
  for (const std::string& update : part.update()) update_bytes_ += static_cast<int64_t>(update.size());
  if (updates_ > options_.updates) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", slot_, " has ", updates_,
                                                   " update values; the model has ", options_.updates, " update ops"));
  }
  if (update_bytes_ > options_.update_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", slot_, " has update values of ",
                                                   update_bytes_, " bytes; the model's have ", options_.update_bytes));
  }
  open_ = part.continued();
  if (!keep) {
    reports_.clear();
  } else if (first) {
    reports_.push_back(part);
    reports_.back().clear_continued();
  } else if (!reports_.empty()) {
    v1::SlotReport& whole = reports_.back();
    if (!part.summary().empty()) whole.mutable_summary()->append(part.summary());
    if (joins) whole.mutable_update(whole.update_size() - 1)->append(part.update(0));
    for (int i = joins ? 1 : 0; i < part.update_size(); ++i) whole.add_update(part.update(i));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
