// Calls a Supervisor according to a script, so that another program can compare it. Executes each line of standard
// input as a command, and prints OK or its error.
//   create       logdir=, chief=, master=, listen=, workers= (in this process), input_steps=, summary=none, events=0,
//                model=, summaries=, grace=, recovery= (seconds), ready=NAME (not initialized), initialize=0,
//                local=1 (there is a local_init), local_ready=1
//   prepare      services=0, wait=1 (for a checkpoint), max_wait=SECONDS
//   run N        runs; prints "ran STEP" for each
//   loop         calls=K end=ok|fail|range|stop: a thread, with the end of its K-th call; interval=SECONDS
//   thread       a thread that ends only when the program lets it
//   wait         until a stop is requested; should_stop; request_stop end=ok|fail|range
//   services, summary, stop, close
//   managed N    end=ok|fail|range, then=fail|range|ok (requested by the body before it ends): ManagedSession, N runs

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/tests/conformance/script_op.h"
#include "lockstep/train/supervisor/supervisor.h"

namespace lockstep::train {
namespace {

absl::Status Ending(const std::string& end) {
  if (end == "fail") return absl::InternalError("the script says so");
  if (end == "range") return absl::OutOfRangeError("the script says so");
  return absl::OkStatus();
}

absl::StatusOr<SupervisorOptions> MakeOptions(const ScriptLine& line) {
  SupervisorOptions options;
  ASSIGN_OR_RETURN(options.session.op, MakeScriptOp(line));
  options.session.logdir = line.Text("logdir");
  options.session.is_chief = line.Int("chief").value_or(1) != 0;
  options.session.master = line.Text("master");
  options.session.listen = line.Text("listen");
  options.session.local_workers = static_cast<int>(line.Int("workers").value_or(1));
  options.session.write_events = line.Int("events").value_or(1) != 0;
  if (const auto period = line.Seconds("model")) options.save_model_period = *period;
  options.save_summaries_period = line.Seconds("summaries").value_or(options.save_summaries_period);
  options.stop_grace = line.Seconds("grace").value_or(options.stop_grace);
  options.recovery_wait = line.Seconds("recovery").value_or(options.recovery_wait);
  if (line.Int("initialize").value_or(1) == 0) options.init_op = kNone;
  if (line.Text("summary") == "none") options.summary = kNone;
  if (const std::string name = line.Text("ready"); !name.empty()) {
    options.ready = [name](Session&) -> absl::StatusOr<std::vector<std::string>> {
      return std::vector<std::string>{name};
    };
  }
  if (line.values.count("local") > 0) options.local_init = [](Session&) { return absl::OkStatus(); };
  if (line.values.count("local_ready") > 0) options.ready_for_local_init = UninitializedVariables;
  return options;
}

class Script {
 public:
  ~Script() { released_ = true; }

  absl::Status Call(const ScriptLine& line) {
    const std::string command = line.Word(0);
    if (command == "create") return Create(line);
    if (command == "prepare") return Prepare(line);
    if (command == "run") return Runs(line, session_);
    if (command == "loop") return Loop(line);
    if (command == "thread") return Thread();
    if (command == "services") return supervisor_->StartStandardServices();
    if (command == "summary") return supervisor_->SummaryComputed(v1::Summary(), 1);
    if (command == "stop") return supervisor_->Stop();
    if (command == "close") return supervisor_->CloseSession();
    if (command == "managed") return Managed(line);
    if (command == "request_stop") return supervisor_->RequestStop(Ending(line.Text("end")));
    if (command == "wait") {
      supervisor_->WaitForStop();
    } else if (command == "should_stop") {
      std::cout << supervisor_->ShouldStop() << "\n";
    } else {
      return absl::UnimplementedError(command);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Create(const ScriptLine& line) {
    ASSIGN_OR_RETURN(SupervisorOptions options, MakeOptions(line));
    ASSIGN_OR_RETURN(supervisor_, Supervisor::Create(std::move(options)));
    return absl::OkStatus();
  }
  static Supervisor::PrepareOptions PrepareOptionsOf(const ScriptLine& line) {
    Supervisor::PrepareOptions prepare;
    prepare.start_standard_services = line.Int("services").value_or(1) != 0;
    prepare.wait_for_checkpoint = line.Int("wait").value_or(0) != 0;
    prepare.max_wait = line.Seconds("max_wait").value_or(prepare.max_wait);
    return prepare;
  }
  absl::Status Prepare(const ScriptLine& line) {
    ASSIGN_OR_RETURN(session_, supervisor_->PrepareOrWaitForSession(PrepareOptionsOf(line)));
    return absl::OkStatus();
  }
  absl::Status Runs(const ScriptLine& line, Session* session) {
    int count = 0;
    if (!absl::SimpleAtoi(line.Word(1), &count)) return absl::UnimplementedError(line.Word(1));
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const StepResult result, session->Run(supervisor_->options().session.op));
      std::cout << "ran " << result.global_step << "\n";
    }
    return absl::OkStatus();
  }
  absl::Status Loop(const ScriptLine& line) {
    auto left = std::make_shared<int64_t>(line.Int("calls").value_or(1));
    return supervisor_->Loop(line.Seconds("interval").value_or(absl::Milliseconds(1)),
                             [this, left, end = line.Text("end")]() -> absl::Status {
                               if (--*left > 0) return absl::OkStatus();
                               if (end == "stop") return supervisor_->RequestStop();
                               return Ending(end);
                             });
  }
  absl::Status Thread() {
    supervisor_->coordinator()->StartThread("held", [this]() -> absl::Status {
      while (!released_) std::this_thread::yield();
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::Status Managed(const ScriptLine& line) {
    return supervisor_->ManagedSession(
        [&](Session& session) -> absl::Status {
          RETURN_IF_ERROR(Runs(line, &session));
          if (line.values.count("then") > 0) supervisor_->RequestStop(Ending(line.Text("then"))).IgnoreError();
          return Ending(line.Text("end"));
        },
        PrepareOptionsOf(line));
  }

  std::atomic<bool> released_{false};
  std::unique_ptr<Supervisor> supervisor_;
  Session* session_ = nullptr;
};

}  // namespace
}  // namespace lockstep::train

int main() {
  lockstep::train::Script script;
  for (std::string text; std::getline(std::cin, text);) {
    std::cout << script.Call(lockstep::train::ScriptLine(text)) << std::endl;  // flushes: a process waits
  }
  return 0;
}
