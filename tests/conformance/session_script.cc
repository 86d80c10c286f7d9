// Runs a session according to a script, so that another program can compare calls and results: session_script MODE.
//   run     lines "hook ..." (script_hooks.h) and one line "session ..." of standard input make a monitored session
//           and its loop. Prints what hooks print, "ran STEP" for each run, and finally "OK" or an error.
//   check   makes the object of each line, "hook ..." or "session ...", separately, and prints "OK" or its error
//   timer   a SecondOrStepTimer: "timer steps=N" or secs=, then "advance SECONDS", "ask STEP", "update STEP"
// The session has logdir=, checkpoint_steps=, checkpoint_secs=, keep=, summary_steps=, summary_secs=, log_steps= (a
// period may be none), chief=, grace=, max_wait=. Its loop has input_steps=N (the input ends after N steps), forever=1
// (ShouldStop is not called), break_at=, fail_at=STEP (the loop ends there, successfully or with an error), more=1
// (calls Run once more at the end), close_twice=1.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/tests/conformance/script_hooks.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/tests/conformance/script_op.h"
#include "lockstep/train/monitored/monitored_training_session.h"

namespace lockstep::train {
namespace {

template <typename T>
Choice<T> ChoiceOf(const ScriptLine& line, const std::string& name, const absl::optional<T>& value) {
  if (line.Text(name) == "none") return kNone;
  return value ? Choice<T>(*value) : Choice<T>();
}

absl::optional<int64_t> StepsOf(const ScriptLine& line, const std::string& name) {
  return line.Text(name) == "none" ? absl::nullopt : line.Int(name);
}

absl::optional<absl::Duration> TimeOf(const ScriptLine& line, const std::string& name) {
  return line.Text(name) == "none" ? absl::nullopt : line.Seconds(name);
}

absl::StatusOr<MonitoredTrainingOptions> MakeOptions(const ScriptLine& line) {
  MonitoredTrainingOptions options;
  ASSIGN_OR_RETURN(options.session.op, MakeScriptOp(line));
  options.session.program = "session_script";
  options.session.logdir = line.Text("logdir");
  options.session.is_chief = line.Int("chief").value_or(1) != 0;
  options.save_checkpoint_steps = ChoiceOf(line, "checkpoint_steps", StepsOf(line, "checkpoint_steps"));
  options.save_checkpoint_secs = ChoiceOf(line, "checkpoint_secs", TimeOf(line, "checkpoint_secs"));
  options.save_summaries_steps = ChoiceOf(line, "summary_steps", StepsOf(line, "summary_steps"));
  options.save_summaries_secs = ChoiceOf(line, "summary_secs", TimeOf(line, "summary_secs"));
  options.log_step_count_steps = line.Int("log_steps").value_or(100);
  options.stop_grace = line.Seconds("grace").value_or(options.stop_grace);
  options.max_wait = line.Seconds("max_wait").value_or(options.max_wait);
  return options;
}

class Script {
 public:
  absl::Status Read(const std::string& text) {
    const ScriptLine line(text);
    if (line.Word(0) == "hook") {
      ASSIGN_OR_RETURN(auto hook, MakeScriptHook(line, &clock_));
      hooks_.push_back(std::move(hook));
    } else if (line.Word(0) == "session") {
      session_ = line;
    } else {
      return absl::UnimplementedError(text);
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(MonitoredTrainingOptions options, MakeOptions(session_));
    for (const auto& hook : hooks_) options.hooks.push_back(hook.get());
    options.gate_loop = session_.values.count("break_at") + session_.values.count("fail_at") > 0;
    return WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& session) -> absl::Status {
      RETURN_IF_ERROR(Loop(session, options.session.op));
      if (session_.Int("more").value_or(0) != 0) RETURN_IF_ERROR(session.Run(options.session.op).status());
      if (session_.Int("close_twice").value_or(0) != 0) RETURN_IF_ERROR(session.Close());
      return absl::OkStatus();
    });
  }

 private:
  absl::Status Loop(MonitoredSession& session, const TrainOp& op) {
    const bool forever = session_.Int("forever").value_or(0) != 0;
    while (forever || !session.ShouldStop()) {
      ASSIGN_OR_RETURN(const StepResult result, session.Run(op));
      std::cout << "ran " << result.global_step << "\n";
      if (session_.Int("fail_at") == result.global_step) return absl::InternalError("the script says so");
      if (session_.Int("break_at") == result.global_step) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  SimulatedClock clock_;
  std::vector<std::unique_ptr<Hook>> hooks_;
  ScriptLine session_{"session"};
};

void RunScript() {
  Script script;
  absl::Status status;
  for (std::string line; status.ok() && std::getline(std::cin, line);) status = script.Read(line);
  if (status.ok()) status = script.Run();
  std::cout << status << "\n";
}

void CheckLines() {
  for (std::string text; std::getline(std::cin, text);) {
    Script script;
    absl::Status status = script.Read(text);
    if (status.ok() && ScriptLine(text).Word(0) == "session") status = script.Run();
    std::cout << status << "\n";
  }
}

absl::Status RunTimer() {
  SimulatedClock clock;
  absl::optional<SecondOrStepTimer> timer;
  for (std::string text; std::getline(std::cin, text);) {
    const ScriptLine line(text);
    if (line.Word(0) == "timer") {
      ASSIGN_OR_RETURN(timer, SecondOrStepTimer::Create(PeriodOf(line), &clock));
    } else if (line.Word(0) == "advance") {
      clock.Advance(*line.Seconds("secs"));
    } else if (line.Word(0) == "ask") {
      std::cout << timer->ShouldTrigger(*line.Int("step")) << "\n";
    } else {
      const auto elapsed = timer->Update(*line.Int("step"));
      std::cout << (elapsed ? absl::StrCat(absl::ToDoubleSeconds(elapsed->time), " ", elapsed->steps) : "first")
                << "\n";
    }
  }
  return absl::OkStatus();
}

absl::Status RunMode(const std::string& mode) {
  if (mode == "timer") return RunTimer();
  if (mode == "check") {
    CheckLines();
  } else if (mode == "run") {
    RunScript();
  } else {
    return absl::InvalidArgumentError("usage: session_script run|check|timer");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  const absl::Status status = lockstep::train::RunMode(argc > 1 ? argv[1] : "");
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 2;
}
