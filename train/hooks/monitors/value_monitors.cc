#include "lockstep/train/hooks/monitors/value_monitors.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/fetched_value.h"

namespace lockstep::train {
namespace {

constexpr double kRelativeTolerance = 1e-5;  // same as numpy.allclose

absl::Status Wrong(const std::string& option, int64_t value, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("PrintTensorMonitor's ", option, " is ", value, " where ", expected, " is expected"));
}

template <typename T>
bool AreClose(absl::Span<const T> a, absl::Span<const T> b, double tolerance) {
  for (size_t i = 0; i < a.size(); ++i) {
    const auto left = static_cast<double>(a[i]), right = static_cast<double>(b[i]);
    if (left == right) continue;  // also true for equal infinities
    if (!(std::abs(left - right) <= tolerance + kRelativeTolerance * std::abs(right))) return false;
  }
  return true;
}

bool Match(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == v1::DT_FLOAT) return AreClose(a.flat<float>(), b.flat<float>(), tolerance);
  if (a.dtype() == v1::DT_DOUBLE) return AreClose(a.flat<double>(), b.flat<double>(), tolerance);
  return a.bytes() == b.bytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrintTensorMonitor>> PrintTensorMonitor::Create(PrintTensorOptions options) {
  if (options.tensors.empty()) {
    return absl::InvalidArgumentError(
        "PrintTensorMonitor's tensors are empty: give \"loss\", \"global_step\" or names of variables");
  }
  if (options.every_n_steps < 0) return Wrong("every_n_steps", options.every_n_steps, "0 or more");
  if (options.summarize < -1) return Wrong("summarize", options.summarize, "-1 or more");
  if (!options.log) options.log = [](const std::string& line) { LOG(INFO) << line; };
  return absl::WrapUnique(new PrintTensorMonitor(std::move(options)));
}

absl::StatusOr<std::vector<std::string>> PrintTensorMonitor::EveryNStepBegin(int64_t step) {
  std::vector<std::string> names;
  for (const std::string& name : options_.tensors) {
    if (!IsOfEveryRun(name)) names.push_back(name);
  }
  return names;
}

absl::StatusOr<bool> PrintTensorMonitor::EveryNStepEnd(int64_t step, const RunValues& values) {
  std::vector<std::string> texts;
  for (const std::string& name : options_.tensors) {
    ASSIGN_OR_RETURN(const Tensor value, FetchedValue(values, name));
    texts.push_back(absl::StrCat(name, " = ", TensorText(value, options_.summarize)));
  }
  options_.log(absl::StrCat("Step ", step, ": ", absl::StrJoin(texts, ", ")));
  return false;
}

absl::Status ValueDumpMonitor::EveryNPostStep(int64_t step, Session& session) {
  ASSIGN_OR_RETURN(ReadResult read, session.Read(variables_));
  // At the end, the run may be at a later step.
  std::map<std::string, Tensor>& values = values_[read.global_step];
  for (NamedTensor& value : read.values) values[value.name] = std::move(value.value);
  return absl::OkStatus();
}

absl::StatusOr<ValueDumpMonitor::Comparison> ValueDumpMonitor::Compare(const ValueDumpMonitor& other, int64_t step,
                                                                       double tolerance) const {
  const auto mine = values_.find(step);
  if (mine == values_.end()) return absl::NotFoundError(absl::StrCat("no values of step ", step, " are kept"));
  const auto theirs = other.values_.find(step);
  Comparison comparison;
  for (const auto& [name, value] : mine->second) {
    if (theirs == other.values_.end() || theirs->second.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the other run has no ", name, " of step ", step));
    }
    const bool match = Match(value, theirs->second.at(name), tolerance);
    (match ? comparison.matched : comparison.non_matched).push_back(name);
  }
  return comparison;
}

}  // namespace lockstep::train
