#include "lockstep/train/slim/train_step.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/slim/chrome_trace.h"

namespace lockstep::train::slim {
namespace {

absl::StatusOr<bool> IsTraced(Session& session, const TrainStepKwargs& kwargs) {
  if (!kwargs.should_trace) return false;
  if (!kwargs.logdir) {
    return absl::InvalidArgumentError(
        "logdir: must be present in train_step_kwargs when should_trace is, for the traces");
  }
  ASSIGN_OR_RETURN(const int64_t step, session.NextStep());
  return kwargs.should_trace(step);
}

absl::StatusOr<StepResult> RunTraced(Session& session, const TrainOp& train_op, const TrainStepKwargs& kwargs) {
  TraceRecorder* const recorder = TraceRecorder::Process();
  recorder->Start();
  const absl::Time origin = absl::Now();
  const absl::StatusOr<StepResult> result = session.Run(train_op);
  if (result.ok()) recorder->Add("step", origin, absl::Now());
  const std::vector<TraceEvent> events = recorder->Stop();
  RETURN_IF_ERROR(result.status());
  const std::string path = JoinPath(*kwargs.logdir, absl::StrCat("tf_trace-", result->global_step, ".json"));
  LOG(INFO) << "Writing trace to " << path;
  RETURN_IF_ERROR(WriteFileAtomically(kwargs.fs, path, ChromeTrace(events, origin)));
  return result;
}

}  // namespace

absl::StatusOr<TrainStepResult> TrainStep(Session& session, const TrainOp& train_op, TrainStepKwargs& kwargs) {
  const absl::Time start = kwargs.clock->Now();
  ASSIGN_OR_RETURN(const bool traced, IsTraced(session, kwargs));
  ASSIGN_OR_RETURN(const StepResult step, traced ? RunTraced(session, train_op, kwargs) : session.Run(train_op));
  const double seconds = absl::ToDoubleSeconds(kwargs.clock->Now() - start);
  if (kwargs.should_log && kwargs.should_log(step.global_step)) {
    LOG(INFO) << absl::StrFormat("global step %d: loss = %.4f (%.3f sec/step)", step.global_step, step.loss, seconds);
  }
  TrainStepResult result;
  result.total_loss = step.loss;
  result.global_step = step.global_step;
  result.should_stop = kwargs.should_stop && kwargs.should_stop(step.global_step);
  return result;
}

}  // namespace lockstep::train::slim
