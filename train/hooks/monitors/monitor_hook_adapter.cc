#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

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

std::string MonitorHookAdapter::State() const {
  HookState states;
  for (const Monitor* monitor : monitors_) {
    const std::string state = monitor->State();
    if (!state.empty()) states.SetText(monitor->name(), state);
  }
  return states.values().empty() ? "" : states.Serialize();
}

absl::Status MonitorHookAdapter::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState states, HookState::Parse(text));
  std::set<std::string> restored;
  for (Monitor* monitor : monitors_) {
    const auto state = states.values().find(monitor->name());
    if (state != states.values().end()) {
      RETURN_IF_ERROR(Named(*monitor, monitor->SetState(state->second)));
      restored.insert(monitor->name());
    } else if (!monitor->State().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the checkpoint has no state of monitor ", monitor->name(), ", which needs one"));
    }
  }
  for (const auto& named : states.values()) {
    if (restored.count(named.first) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the checkpoint has a state of monitor ", named.first, ", not here now"));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::train
