#include "lockstep/server/sync/workers/contribution_counts.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr int kMostWorkers = 64;

// Adds the counts of a RunStatus or a WorkerStatus.
template <typename Counts>
void AddCounts(const std::string& prefix, const Counts& counts, v1::Summary* summary) {
  const auto add = [&](const char* result, int64_t count) {
    v1::Summary::Value* const value = summary->add_value();
    value->set_tag(absl::StrCat(prefix, "/", result));
    value->set_simple_value(static_cast<float>(count));
  };
  add("accepted", counts.accepted());
  add("stale", counts.stale());
  add("duplicate", counts.duplicate());
  add("rejected", counts.rejected());
}

}  // namespace

v1::Summary ContributionCounts(const v1::RunStatus& status) {
  v1::Summary summary;
  AddCounts("contributions", status, &summary);
  const int workers = std::min(status.worker_size(), kMostWorkers);
  for (int i = 0; i < workers; ++i) {
    AddCounts(absl::StrCat("contributions/", status.worker(i).name()), status.worker(i), &summary);
  }
  return summary;
}

}  // namespace lockstep
