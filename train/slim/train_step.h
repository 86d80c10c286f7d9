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

// Asked with a global step.
using StepPredicate = std::function<bool(int64_t global_step)>;
// Takes a summary of the program's own, at a global step.
using train::SummaryWriter;

// What a step function is given besides the session: tf-slim's dictionary train_step_kwargs. A value.
struct TrainStepKwargs {
  // After the step: whether the loop is to end. Null: it is not.
  StepPredicate should_stop;
  // After the step: whether it is logged. Null: it is not.
  StepPredicate should_log;
  // Before the step, with the global step that it makes one more of: whether it is traced. Null: it is not. Needs
  // logdir.
  StepPredicate should_trace;
  // Where traces go; absent: nowhere.
  absl::optional<std::string> logdir;
  // Set by Train; null where no events are written.
  SummaryWriter summary_writer;
  // The program's own.
  std::map<std::string, std::any> extra;
  // The chief: returns what the step function, the predicates and `extra` have come to, after each call of the step
  // function. Every checkpoint holds it, and set_state restores it before the first call of the life that continues
  // from there, so that kills of the chief change nothing. Both or neither.
  std::function<std::string(const TrainStepKwargs& kwargs)> state;
  std::function<absl::Status(TrainStepKwargs& kwargs, absl::string_view state)> set_state;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

struct TrainStepResult {
  double total_loss = 0;
  bool should_stop = false;
  // StepResult::global_step of the last step that was taken; 0 if a step function does not say.
  int64_t global_step = 0;
};

// Takes one step, up to 64, or none, and says whether the loop is to end. Errors end the loop: OutOfRange well, Aborted
// and Unavailable with another session. A life of the chief that continues from a checkpoint repeats the call that was
// interrupted, from its beginning: Run returns the steps that it returned before, and what Assign and ChangeSettings
// have set is not set again. Neither waits for the disk: the next checkpoint records what they have set.
using TrainStepFn =
    std::function<absl::StatusOr<TrainStepResult>(Session& session, const TrainOp& train_op, TrainStepKwargs& kwargs)>;

// One step as kwargs has it: traces it, runs it, logs it, asks whether to stop. A trace is tf_trace-<step>.json in the
// logdir, of the global step after the update: what this process did meanwhile (compute, input, wait, send, receive,
// apply, save), for chrome://tracing. InvalidArgument for should_trace without logdir; else the errors of Session::Run
// and of the file.
absl::StatusOr<TrainStepResult> TrainStep(Session& session, const TrainOp& train_op, TrainStepKwargs& kwargs);

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_TRAIN_STEP_H_
