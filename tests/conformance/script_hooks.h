#ifndef LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

// The hook of a line "hook KIND NAME=VALUE...". `clock`, the hooks' time, outlives it. KIND is
//   record      prints each call and its global step: "NAME before 3". fail=, stop=, range= WHERE[@STEP]: there it
//               returns Internal, asks for the stop, returns OutOfRange; advance=SECONDS, lasts=SECONDS: the time moves
//               before each run, and during it
//   stop        StopAtStepHook: num_steps, last_step
//   saver       CheckpointSaverHook: steps, secs; listener=NAME prints its calls, listener_stop=STEP makes it stop
//   counter     StepCounterHook: steps, secs
//   summary     SummarySaverHook of a scalar "value": steps, secs
//   logging     LoggingTensorHook: iter, secs, at_end; prints "logged STEP"
//   nan, waiter, final, profiler, early: steps, secs, wait, poll, patience
// Errors: those of making it.
absl::StatusOr<std::unique_ptr<Hook>> MakeScriptHook(const ScriptLine& line, SimulatedClock* clock);

// Steps and seconds of a line.
Period PeriodOf(const ScriptLine& line);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_
