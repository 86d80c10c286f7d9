#ifndef LOCKSTEP_TRAIN_PROGRAM_PROGRAM_H_
#define LOCKSTEP_TRAIN_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/train/program/cluster_flags.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// The main function of a training program: its flags, its signals and its exit code. Flags or the environment
// (LOCKSTEP_ variables, or TF_CONFIG, as Kubeflow sets it) define the role of the process: chief, worker, parameter
// server or evaluator. Create it first in main, before any thread.
//
//   int main(int argc, char** argv) {
//     lockstep::train::Program program(argc, argv, "Trains a softmax regression.");
//     return program.Run([&]() -> absl::Status { ... OpenSession(program.Options(op)) ... });
//   }
class Program {
 public:
  // Declares the flags that every program has: --steps, --seed, --new_run, --port_file, --address_file, --advertise and
  // those of ClusterFlags.
  Program(int argc, char** argv, std::string summary);

  // Returns the command line, to which the program may add its own flags before Run.
  CommandLine& command_line() { return command_line_; }

  // Parses the flags, runs `body` and returns the exit code: 0 for success, including OutOfRange from the body, which
  // means that the input or the run has ended; 1 if the run failed or an exception was thrown; 2 for wrong arguments;
  // 138 if a restart may help; 143 if a signal stopped the process and the last step is saved. SIGTERM, SIGINT, SIGHUP
  // and SIGXCPU stop the body's sessions. On SIGUSR1 and SIGUSR2, the chief's sessions save immediately, and the body
  // continues. The chief and the workers run `body`. A parameter server waits for the end of the run. An evaluator
  // evaluates each checkpoint according to the run's configuration, through the checkpoint of the last step.
  int Run(const std::function<absl::Status()>& body);
  // Like Run, but runs `body` in every role. For a body that calls learn::Run, for example.
  int RunEveryRole(const std::function<absl::Status()>& body);

  // Returns session options set from the flags. Must be called in the body. Unless `op` says otherwise, a cluster's
  // chief keeps answering for two seconds after the run is over, so that all other processes learn of the end.
  SessionOptions Options(TrainOp op);
  bool is_chief() const { return process_.task.role == Role::kChief; }
  int task_index() const { return process_.task.index; }
  const ProcessRole& process() const { return process_; }
  StopSignal* stop() { return &stop_; }
  // Returns `spec` with the values of --seed and --steps, if given. --steps replaces the length in `spec`, which may be
  // steps, additional_steps or unbounded.
  config::v1::RunSpec WithFlags(config::v1::RunSpec spec) const;

 private:
  // Determines the role of the process. Returns InvalidArgument for flags that contradict each other.
  absl::Status Resolve();
  // Checks the chief's flags. Returns InvalidArgument for flags that contradict each other.
  absl::Status CheckChiefFlags() const;
  TerminationWatch::Options WatchOptions();
  // Waits for the end of the run if this is a parameter server, or evaluates the run's checkpoints if it is an
  // evaluator.
  absl::Status WaitOrEvaluate();

  const int argc_;
  char** const argv_;
  ClusterFlags cluster_;
  ProcessRole process_;
  // The fields that the chief's flags set.
  SessionOptions chief_;
  absl::optional<int64_t> steps_;
  absl::optional<uint64_t> seed_;
  StopSignal stop_;
  CommandLine command_line_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_PROGRAM_PROGRAM_H_
