#include "lockstep/train/hooks/checkpoint_saver_hook.h"

#include "absl/memory/memory.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<CheckpointSaverHook>> CheckpointSaverHook::Create(
    const CheckpointSaverOptions& options) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(options.period, options.clock, "CheckpointSaverHook: "));
  return absl::WrapUnique(new CheckpointSaverHook(options, timer));
}

absl::Status CheckpointSaverHook::Begin() {
  timer_.Reset();
  for (CheckpointListener* listener : options_.listeners) RETURN_IF_ERROR(listener->Begin());
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::AfterCreateSession(Session& session) {
  ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
  timer_.Update(step);
  return Save(session, step).status();
}

absl::Status CheckpointSaverHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  ASSIGN_OR_RETURN(const bool stop, Save(context.session(), step));
  if (stop) context.RequestStop("a listener to its saves asked for the end");
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::End(Session& session) {
  ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
  if (timer_.last_triggered_step() != step) RETURN_IF_ERROR(Save(session, step).status());
  for (CheckpointListener* listener : options_.listeners) RETURN_IF_ERROR(listener->End(session, step));
  return absl::OkStatus();
}

bool CheckpointSaverHook::GatesAt(int64_t step) const {
  if (options_.period.time) return !options_.listeners.empty();
  return timer_.MayTriggerAt(step);
}

absl::StatusOr<bool> CheckpointSaverHook::Save(Session& session, int64_t step) {
  for (CheckpointListener* listener : options_.listeners) RETURN_IF_ERROR(listener->BeforeSave(session, step));
  ASSIGN_OR_RETURN(const std::string prefix, session.Save());
  bool stop = false;
  for (CheckpointListener* listener : options_.listeners) {
    ASSIGN_OR_RETURN(const bool listener_stops, listener->AfterSave(session, step, prefix));
    stop = stop || listener_stops;
  }
  return stop;
}

}  // namespace lockstep::train
