#ifndef LOCKSTEP_TRAIN_SLIM_TRAIN_STEP_H_
#define LOCKSTEP_TRAIN_SLIM_TRAIN_STEP_H_

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train::slim {

// A condition on the global step.
using StepPredicate = std::function<bool(int64_t global_step)>;
// Writes the program's own summary at a global step.
using train::SummaryWriter;

// The arguments of a step function besides the session: tf-slim's dictionary train_step_kwargs. A value type.
struct TrainStepKwargs {
  // Returns true after the step at which the loop should end. If null, never.
  StepPredicate should_stop;
  // Returns true after a step that should be logged. If null, never.
  StepPredicate should_log;
  // Returns true before a step that should be traced, given the global step at which it starts. If null, never.
  // Requires logdir.
  StepPredicate should_trace;
  // The directory for traces. If absent, none are written.
  absl::optional<std::string> logdir;
  // Set by Train. Null if no events are written.
  SummaryWriter summary_writer;
  // The program's own values.
  std::map<std::string, std::any> extra;
  // On the chief, `state` is called after each call to the step function, and returns the state of the step function,
  // the predicates and `extra`. Every checkpoint contains it. A chief that continues from a checkpoint passes it to
  // set_state before the first step call, so that killing the chief does not affect the result. Set both or neither.
  std::function<std::string(const TrainStepKwargs& kwargs)> state;
  std::function<absl::Status(TrainStepKwargs& kwargs, absl::string_view state)> set_state;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

struct TrainStepResult {
  double total_loss = 0;
  bool should_stop = false;
  // StepResult::global_step of the last step taken; 0 if the step function does not set it.
  int64_t global_step = 0;
};

// Takes up to 64 steps (usually one, possibly none), and returns whether the loop should end. Errors end the loop:
// OutOfRange ends it successfully, and after Aborted and Unavailable another session follows. A chief that continues
// from a checkpoint repeats the interrupted call from the beginning: Run returns the same steps as before, and values
// already set by Assign and ChangeSettings are not set again. Neither of these waits for the disk; the next checkpoint
// records the values.
using TrainStepFn =
    std::function<absl::StatusOr<TrainStepResult>(Session& session, const TrainOp& train_op, TrainStepKwargs& kwargs)>;

// Takes one step according to `kwargs`: traces it, runs it, logs it, and checks whether the loop should stop. The trace
// is written to tf_trace-<step>.json in the logdir, where <step> is the global step after the update. It shows this
// process's work during the step (compute, input, wait, send, receive, apply, save), for chrome://tracing. Errors:
// InvalidArgument for should_trace without logdir; those of Session::Run and of writing the file.
absl::StatusOr<TrainStepResult> TrainStep(Session& session, const TrainOp& train_op, TrainStepKwargs& kwargs);

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_TRAIN_STEP_H_
