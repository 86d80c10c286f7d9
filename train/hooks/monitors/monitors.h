#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITORS_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"
#include "lockstep/train/hooks/monitors/monitor.h"
#include "lockstep/train/hooks/stop/stop_at_step_hook.h"
#include "lockstep/train/hooks/summary_saver_hook.h"
#include "lockstep/train/saver/saver.h"

namespace lockstep::train {

// Ready-made monitors of the older protocol (monitor.h). New programs should use hooks: StopAtStepHook,
// CheckpointSaverHook, StepCounterHook, SummarySaverHook, NanTensorHook, ValidationMonitor (which is a hook here).

// A monitor that stops after num_steps steps, counting the first, or at last_step. Each worker needs its own monitor.
class StopAtStepMonitor : public Monitor {
 public:
  // Returns InvalidArgument unless exactly one of num_steps and last_step is set and it is at least 1.
  static absl::StatusOr<std::unique_ptr<StopAtStepMonitor>> Create(const StopAtStepOptions& options);

  std::string name() const override { return "StopAtStep"; }
  bool run_on_all_workers() const override { return true; }
  absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step) override;
  absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return target_.GatesAt(step); }
  std::string State() const override { return target_.State(); }
  absl::Status SetState(absl::string_view state) override { return target_.SetState(state); }

 private:
  explicit StopAtStepMonitor(const StopAtStepTarget& target) : target_(target) {}

  StopAtStepTarget target_;
};

// A monitor that saves a checkpoint after the first step, then periodically, and at the end if the last step has not
// been saved.
class CheckpointSaverMonitor : public Monitor {
 public:
  // Returns InvalidArgument if the period is invalid.
  static absl::StatusOr<std::unique_ptr<CheckpointSaverMonitor>> Create(const Period& period,
                                                                        Clock* clock = Clock::Real());

  std::string name() const override { return "CheckpointSaver"; }
  absl::Status Begin(absl::optional<int64_t> max_steps) override;
  absl::Status PostStep(int64_t step, Session& session) override;
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override { return !period_.time && timer_.MayTriggerAt(step); }

 private:
  CheckpointSaverMonitor(const Period& period, const SecondOrStepTimer& timer) : period_(period), timer_(timer) {}

  const Period period_;
  SecondOrStepTimer timer_;
  absl::optional<int64_t> last_step_;
};

// A monitor that only observes and keeps no state.
class LookingEveryN : public EveryN {
 public:
  using EveryN::EveryN;
  bool OnlyLooks() const override { return true; }
  std::string State() const override { return ""; }
  absl::Status SetState(absl::string_view state) override { return absl::OkStatus(); }
};

// A monitor that writes "global_step/sec", measured between two active steps, to the chief's event file.
class StepCounterMonitor : public LookingEveryN {
 public:
  explicit StepCounterMonitor(int64_t every_n_steps = 100, Clock* clock = Clock::Real())
      : LookingEveryN(every_n_steps), clock_(clock) {}
  std::string name() const override { return "StepCounter"; }
  bool GatesAt(int64_t step) const override { return false; }

 protected:
  absl::Status EveryNPostStep(int64_t step, Session& session) override;

 private:
  Clock* const clock_;
  absl::optional<std::pair<int64_t, absl::Time>> last_;
};

// A monitor that writes the provider's summary at each active step.
class SummarySaverMonitor : public LookingEveryN {
 public:
  // Returns InvalidArgument if there is no provider.
  static absl::StatusOr<std::unique_ptr<SummarySaverMonitor>> Create(SummaryProvider provider,
                                                                     int64_t every_n_steps = 100);
  std::string name() const override { return "SummarySaver"; }

 protected:
  absl::Status EveryNPostStep(int64_t step, Session& session) override;

 private:
  SummarySaverMonitor(SummaryProvider provider, int64_t every_n_steps)
      : LookingEveryN(every_n_steps), provider_(std::move(provider)) {}

  const SummaryProvider provider_;
};

// A monitor that checks the loss at the active steps. A NaN causes an error (InvalidArgument), or a warning and a stop.
// The chief also checks every loss itself, as described at NanTensorHook.
class NanLossMonitor : public EveryN {
 public:
  explicit NanLossMonitor(int64_t every_n_steps = 100, bool fail_on_nan_loss = true)
      : EveryN(every_n_steps), fail_on_nan_loss_(fail_on_nan_loss) {}
  std::string name() const override { return "NanLoss"; }
  bool run_on_all_workers() const override { return true; }

 protected:
  absl::StatusOr<bool> EveryNStepEnd(int64_t step, const RunValues& values) override;

 private:
  const bool fail_on_nan_loss_;
};

// A monitor that keeps the values of a variable, or of "loss", at the active steps since the process started.
class CaptureVariableMonitor : public LookingEveryN {
 public:
  explicit CaptureVariableMonitor(std::string variable, int64_t every_n_steps = 100, int64_t first_n_steps = 1)
      : LookingEveryN(every_n_steps, first_n_steps), variable_(std::move(variable)) {}
  std::string name() const override { return "CaptureVariable"; }

  // The values by step.
  const std::map<int64_t, Tensor>& values() const { return values_; }

 protected:
  absl::StatusOr<std::vector<std::string>> EveryNStepBegin(int64_t step) override;
  absl::StatusOr<bool> EveryNStepEnd(int64_t step, const RunValues& values) override;

 private:
  const std::string variable_;
  std::map<int64_t, Tensor> values_;
};

struct ExportOptions {
  // The directory for the exports; created if it does not exist.
  std::string directory;
  // The variables to export. If empty, exports all that the session reads.
  std::vector<std::string> variables;
  int64_t every_n_steps = 100;
  // The number of newest exports to keep; 0 keeps all.
  int64_t exports_to_keep = 5;
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
};

// A monitor that writes the values at the active steps, and at the end, as checkpoints "export-<step>". The checkpoints
// hold values without a graph, for a model's code to restore or serve.
class ExportMonitor : public LookingEveryN {
 public:
  // Returns InvalidArgument if the directory is empty, or an option is out of range.
  static absl::StatusOr<std::unique_ptr<ExportMonitor>> Create(const ExportOptions& options);
  std::string name() const override { return "Export"; }
  absl::Status Begin(absl::optional<int64_t> max_steps) override;

 protected:
  absl::Status EveryNPostStep(int64_t step, Session& session) override;

 private:
  ExportMonitor(const ExportOptions& options, std::unique_ptr<Saver> saver)
      : LookingEveryN(options.every_n_steps), options_(options), saver_(std::move(saver)) {}

  const ExportOptions options_;
  const std::unique_ptr<Saver> saver_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITORS_H_
