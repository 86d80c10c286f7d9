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

// The main function of a program that trains: its flags, its signals and its exit code. Flags or the environment
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

  // Parses the flags, runs `body` and returns the exit code: 0 done, also if the body returns OutOfRange, as an input
  // or a run that has ended does; 1 the run failed, or an exception was thrown; 2 wrong arguments; 138 a restart may
  // help; 143 stopped by a signal, with the last step saved. SIGTERM, SIGINT, SIGHUP and SIGXCPU stop the sessions of
  // the body; at SIGUSR1 and SIGUSR2, the chief's sessions save now, and the body continues. The chief and the workers
  // run `body`. A parameter server waits for the end of the run; an evaluator evaluates each checkpoint as the run's
  // configuration says, until that of the last step.
  int Run(const std::function<absl::Status()>& body);
  // Does what Run does, but runs `body` in every role, such as one that calls learn::Run.
  int RunEveryRole(const std::function<absl::Status()>& body);

  // Returns session options that follow the flags. Must be called in the body. A chief of a cluster answers for two
  // seconds after the run is over, unless `op` says otherwise, so that all other processes learn of the end.
  SessionOptions Options(TrainOp op);
  bool is_chief() const { return process_.task.role == Role::kChief; }
  int task_index() const { return process_.task.index; }
  const ProcessRole& process() const { return process_; }
  StopSignal* stop() { return &stop_; }
  // Returns `spec` with --seed, and with --steps in place of the length that it has: its steps, additional_steps or
  // unbounded.
  config::v1::RunSpec WithFlags(config::v1::RunSpec spec) const;

 private:
  // Determines the role of the process. InvalidArgument for flags that contradict each other.
  absl::Status Resolve();
  // Checks the flags of the chief. InvalidArgument for flags that contradict each other.
  absl::Status CheckChiefFlags() const;
  TerminationWatch::Options WatchOptions();
  // Does the work of a process that neither trains nor has its own body.
  absl::Status WaitOrEvaluate();

  const int argc_;
  char** const argv_;
  ClusterFlags cluster_;
  ProcessRole process_;
  // The chief's flags.
  struct Listening {
    std::string port_file, address_file, advertise;
    bool new_run = false;
  } chief_;
  absl::optional<int64_t> steps_;
  absl::optional<uint64_t> seed_;
  StopSignal stop_;
  CommandLine command_line_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_PROGRAM_PROGRAM_H_
