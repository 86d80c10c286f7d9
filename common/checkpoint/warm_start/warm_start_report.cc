#include "lockstep/common/checkpoint/warm_start/warm_start_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"

namespace lockstep {
namespace {

// Maximum number of names in a list.
constexpr size_t kMaxListed = 50;

void AppendList(absl::string_view what, absl::Span<const std::string> names, std::string* report) {
  if (names.empty()) return;
  const size_t shown = std::min(names.size(), kMaxListed);
  absl::StrAppend(report, "\n  ", what, ": ", absl::StrJoin(names.subspan(0, shown), ", "));
  if (shown < names.size()) absl::StrAppend(report, " and ", names.size() - shown, " more");
}

}  // namespace

void WarmStartReport::AddLoaded(absl::string_view variable, const Shape& shape, const std::string& key,
                                absl::string_view how) {
  used_keys_.insert(key);
  loaded_.push_back(absl::StrCat("\n  ", variable, shape.ToString()));
  if (key != variable) absl::StrAppend(&loaded_.back(), " from ", key);
  absl::StrAppend(&loaded_.back(), how);
}

void WarmStartReport::AddMissing(const std::string& variable, const std::string& key) {
  missing_.push_back(variable == key ? variable : absl::StrCat(variable, " (", key, ")"));
}

std::string WarmStartReport::ToString(const TensorReader& checkpoint, int num_variables) const {
  std::vector<std::string> unused;
  for (std::string& name : checkpoint.names()) {
    if (used_keys_.count(name) == 0 && name != kGlobalStepKey) unused.push_back(std::move(name));
  }
  std::string report = absl::StrCat("warm start from ", checkpoint.prefix(), ": ", loaded_.size(), " of ",
                                    num_variables, " variables", absl::StrJoin(loaded_, ""));
  for (const std::string& warning : warnings_) absl::StrAppend(&report, "\n  warning: ", warning);
  AppendList("initial value, not in the checkpoint", missing_, &report);
  AppendList("initial value, not to be loaded", excluded_, &report);
  AppendList("not used of the checkpoint", unused, &report);
  return report;
}

}  // namespace lockstep
