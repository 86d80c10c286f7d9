#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/monitors/monitor.h"

namespace lockstep::train {

struct MonitorHookAdapterOptions {
  // In the order in which they are called; they outlive the hook.
  std::vector<Monitor*> monitors;
  // On a worker only those that run on all workers are called.
  bool is_chief = true;
  // The step at which the run is to end, if that is known.
  absl::optional<int64_t> max_steps;
};

// Older monitors as one hook, which is to be the last of a program. The step of a run is the last known global step
// + 1. The stop of any of them is the hook's, after PostStep of all. It gates where any of them does, and its state is
// theirs.
class MonitorHookAdapter : public Hook {
 public:
  // InvalidArgument for two monitors of one name of which one keeps a state.
  static absl::StatusOr<std::unique_ptr<MonitorHookAdapter>> Create(const MonitorHookAdapterOptions& options);

  std::string name() const override { return "MonitorHookAdapter"; }
  absl::Status Begin() override;
  absl::Status BeforeRun(RunContext& context) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override;
  std::string State() const override;
  // InvalidArgument names monitors whose state is not there, and states whose monitor is not there.
  absl::Status SetState(absl::string_view state) override;

 private:
  MonitorHookAdapter(std::vector<Monitor*> monitors, absl::optional<int64_t> max_steps)
      : monitors_(std::move(monitors)), max_steps_(max_steps) {}

  const std::vector<Monitor*> monitors_;
  const absl::optional<int64_t> max_steps_;
  // Of the present run.
  int64_t step_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_HOOK_ADAPTER_H_
