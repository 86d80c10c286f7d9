#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

absl::Status Named(const Monitor& monitor, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("monitor ", monitor.name(), ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MonitorHookAdapter>> MonitorHookAdapter::Create(
    const MonitorHookAdapterOptions& options) {
  std::vector<Monitor*> monitors;
  std::set<std::string> with_state;
  for (Monitor* monitor : options.monitors) {
    if (!options.is_chief && !monitor->run_on_all_workers()) continue;
    monitors.push_back(monitor);
    if (monitor->State().empty()) continue;
    if (!with_state.insert(monitor->name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two monitors that keep a state are named ", monitor->name(), ": give them different names"));
    }
  }
  return absl::WrapUnique(new MonitorHookAdapter(std::move(monitors), options.max_steps));
}

MonitorHookAdapter::MonitorHookAdapter(std::vector<Monitor*> monitors, absl::optional<int64_t> max_steps)
    : monitors_(std::move(monitors)), max_steps_(max_steps) {
  for (Monitor* monitor : monitors_) states_.push_back(std::make_unique<MonitorState>(monitor));
}

absl::Status MonitorHookAdapter::Begin() {
  for (Monitor* monitor : monitors_) RETURN_IF_ERROR(Named(*monitor, monitor->Begin(max_steps_)));
  return absl::OkStatus();
}

absl::Status MonitorHookAdapter::BeforeRun(RunContext& context) {
  step_ = context.global_step() + 1;
  for (Monitor* monitor : monitors_) {
    const auto names = monitor->StepBegin(step_);
    RETURN_IF_ERROR(Named(*monitor, names.status()));
    for (const std::string& name : *names) context.Fetch(name);
  }
  return absl::OkStatus();
}

absl::Status MonitorHookAdapter::AfterRun(RunContext& context, const RunValues& values) {
  for (Monitor* monitor : monitors_) {
    const auto stop = monitor->StepEnd(step_, values);
    RETURN_IF_ERROR(Named(*monitor, stop.status()));
    if (*stop) context.RequestStop(absl::StrCat("monitor ", monitor->name(), " asked for the end"));
  }
  for (Monitor* monitor : monitors_) RETURN_IF_ERROR(Named(*monitor, monitor->PostStep(step_, context.session())));
  return absl::OkStatus();
}

absl::Status MonitorHookAdapter::End(Session& session) {
  for (Monitor* monitor : monitors_) RETURN_IF_ERROR(Named(*monitor, monitor->End(session)));
  return absl::OkStatus();
}

bool MonitorHookAdapter::GatesAt(int64_t step) const {
  return std::any_of(monitors_.begin(), monitors_.end(), [&](const Monitor* m) { return m->GatesAt(step); });
}

bool MonitorHookAdapter::OnlyLooks() const {
  return std::all_of(monitors_.begin(), monitors_.end(), [](const Monitor* m) { return m->OnlyLooks(); });
}

std::vector<Hook*> MonitorHookAdapter::StateParts() {
  std::vector<Hook*> parts;
  for (const auto& state : states_) parts.push_back(state.get());
  return parts;
}

}  // namespace lockstep::train
