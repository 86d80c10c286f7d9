#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/monitors/monitor.h"

namespace lockstep::train {

struct MonitorHookAdapterOptions {
  // The monitors, in call order. They must outlive the hook.
  std::vector<Monitor*> monitors;
  // If false, only monitors that run on all workers are called.
  bool is_chief = true;
  // The step at which the run ends, if known.
  absl::optional<int64_t> max_steps;
};

// A hook that runs monitors of the older protocol. Must be a program's last hook. A run's step is the last known global
// step + 1. If a monitor requests a stop, the hook requests it after PostStep of all monitors. It gates the steps that
// any monitor gates. Each monitor keeps its own state, under the name "monitor NAME".
class MonitorHookAdapter : public Hook {
 public:
  // Returns InvalidArgument if two monitors that keep a state have the same name.
  static absl::StatusOr<std::unique_ptr<MonitorHookAdapter>> Create(const MonitorHookAdapterOptions& options);

  std::string name() const override { return "MonitorHookAdapter"; }
  bool OnlyLooks() const override;
  absl::Status Begin() override;
  absl::Status BeforeRun(RunContext& context) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override;
  std::vector<Hook*> StateParts() override;

 private:
  // The state of one monitor.
  class MonitorState : public Hook {
   public:
    explicit MonitorState(Monitor* monitor) : monitor_(monitor) {}
    std::string name() const override { return "monitor " + monitor_->name(); }
    bool OnlyLooks() const override { return monitor_->OnlyLooks(); }
    std::string State() const override { return monitor_->State(); }
    absl::Status SetState(absl::string_view state) override { return monitor_->SetState(state); }

   private:
    Monitor* const monitor_;
  };

  MonitorHookAdapter(std::vector<Monitor*> monitors, absl::optional<int64_t> max_steps);

  const std::vector<Monitor*> monitors_;
  std::vector<std::unique_ptr<MonitorState>> states_;
  const absl::optional<int64_t> max_steps_;
  // The step of the current run.
  int64_t step_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_
