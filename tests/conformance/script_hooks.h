#ifndef LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

// Makes the hook specified by a line "hook KIND NAME=VALUE...". `clock`, the hooks' time, must outlive it. KIND is
//   record      prints each call and its global step: "NAME before 3". fail=, stop=, range= WHERE[@STEP]: there it
//               returns Internal, requests a stop, returns OutOfRange; advance=SECONDS, lasts=SECONDS: the time
//               advances before each run, and during it
//   stop        StopAtStepHook: num_steps, last_step
//   saver       CheckpointSaverHook: steps, secs; listener=NAME prints its calls, listener_stop=STEP makes it stop
//   counter     StepCounterHook: steps, secs
//   summary     SummarySaverHook of a scalar "value": steps, secs
//   logging     LoggingTensorHook: iter, secs, at_end; prints "logged STEP"
//   nan, waiter, final, profiler, early: steps, secs, wait, poll, patience
// Returns the error if the hook cannot be made.
absl::StatusOr<std::unique_ptr<Hook>> MakeScriptHook(const ScriptLine& line, SimulatedClock* clock);

// Returns the period given by a line's steps and secs.
Period PeriodOf(const ScriptLine& line);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_HOOKS_H_
