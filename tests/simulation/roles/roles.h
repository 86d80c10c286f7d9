#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_ROLES_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_ROLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/chief_server.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/build.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace simulation {

// The programs of a run, as processes of the simulation. Each Run function follows a program's main line by line, with
// the simulated network in place of gRPC, and returns the exit code.

// Returns the build info of the simulated programs. It is the same for every build on every machine, because files and
// frames contain it, and a life must not depend on their lengths.
v1::BuildInfo SimulatedBuild();

struct ChiefRole {
  config::v1::RunSpec config;
  // If true, the configuration may differ from the one in the logdir.
  bool change_settings = false;
  // Chief::Options.
  int64_t old_version_bytes = 0;
  std::string logdir;
  // "host:port"; port 0 takes any free port.
  std::string listen;
  std::string port_file;     // empty for none
  std::string address_file;  // empty for none
  absl::Duration lock_wait;
  // ChiefOptions::replaces.
  absl::optional<int64_t> replaces;
  // If true, the server has the limits of a real one. Otherwise they are so small that strangers reach them.
  bool many_workers = false;
  // If true, the chief beats, so that a standby can replace it.
  bool beats = false;
  // ChiefHost::Options.
  bool standby = false;
  // Callbacks for the judge, called by threads of the chief.
  //
  // Called with the step at which the chief begins, or -1 if there is no model yet.
  std::function<void(Process*, int64_t generation, int64_t step)> on_serving;
  ReplyObserver observer;
  // Called with the result of Wait and the last committed step, or -1 if there was no model yet.
  std::function<void(Process*, const absl::Status&, int64_t step)> on_waited;
};
int RunChief(Process* process, const ChiefRole& role);

// Called with the values that a program has read, and their step.
using OnRead = std::function<void(Process*, int64_t step, absl::Span<const train::NamedTensor> values)>;

// A program that runs the chief and follows the run with hooks. Supports Process::Ask with kEnd, kAssign and kChange.
struct ProgramRole {
  ChiefRole chief;
  RunRules rules;
  // Callbacks, called by the program's hooks and threads.
  OnRead on_read;
  // Called when a hook is about to set variables or to change settings at this step. An earlier incarnation may already
  // have done so.
  std::function<void(Process*, const RunChanges::Assignment&)> on_hook_assigns;
  std::function<void(Process*, int64_t step, const RunChanges::Settings&)> on_hook_changes;
  std::function<void(Process*)> on_hook_failed;
  // Called when the program knows that variables were set.
  std::function<void(Process*, bool by_hook)> on_assigned;
  // Called when a thread of the program knows that the run has these settings.
  std::function<void(Process*, const RunChanges::Settings&)> on_changed;
  // Called when the program's hooks are about to see the update that makes this step, or have ended the run at this
  // step.
  std::function<void(Process*, int64_t step)> on_hooks_see;
  std::function<void(Process*, int64_t step)> on_hooks_end;
  std::function<void(Process*, const std::string& what)> on_wrong;
};
int RunProgram(Process* process, const ProgramRole& role);

struct WorkerRole {
  std::string name;
  std::string master;
  absl::optional<int64_t> startup_delay_steps;
  // The longest time that a slot takes, and the shortest, as a fraction of it.
  absl::Duration slot_time;
  double least_part = 0.5;
  // If true, the steps of the worker's tokens must never decrease while a chief lives. Under FIRST_ARRIVALS, they may
  // decrease.
  bool steps_grow = true;
  RunRules rules;
  // Called before each slot.
  std::function<void(Process*, const SlotKey&, VariableValues)> on_slot;
  std::function<void(Process*, const absl::Status&)> on_ended;
  // Callbacks of RunWorkerProgram.
  OnRead on_read;
  std::function<void(Process*, const std::string& what)> on_wrong;
};
// Runs a worker. Supports Process::Ask with kEnd, which makes a call, and with kEndWithBlock, which requests the end in
// the report of the next block.
int RunWorker(Process* process, const WorkerRole& role);
// Runs the same worker in a program whose hooks read the variables and carry out the actions.
int RunWorkerProgram(Process* process, const WorkerRole& role);

// A program that reads the variables several times while others train.
struct ReaderRole {
  std::string master;
  OnRead on_read;
};
int RunReader(Process* process, const ReaderRole& role);

// The program `lockstep run`. `start` starts a program, given its command.
struct LauncherRole {
  int workers = 1;
  std::function<Process*(const std::vector<std::string>& command)> start;
};
int RunLauncher(Process* process, const LauncherRole& role);
// The file to which the launcher's chief writes its port.
extern const char kPortFile[];

// A program that is not a worker. It connects repeatedly and sends messages that no honest worker would send.
struct StrangerRole {
  std::string target;
  // Returns the chief's current generation.
  std::function<int64_t()> generation;
};
int RunStranger(Process* process, const StrangerRole& role);

// A foreign worker that requests tokens like an honest one, but contributes to slots that do not belong to its token.
struct ImpostorRole {
  std::string target;
  // Returns an honest worker's OpenSessionRequest, or an empty string if none has arrived.
  std::function<std::string()> open_session;
};
int RunImpostor(Process* process, const ImpostorRole& role);

// A foreign worker that requests tokens on one stream of its session after another, and never reads a reply.
struct DeafRole {
  ImpostorRole peer;
  // Called when the chief must end `call` soon, because `successor` replaces it or, if `successor` is null, because its
  // last frame broke a rule or announced that the worker leaves.
  std::function<void(std::shared_ptr<Call> call, std::shared_ptr<Call> successor)> on_over;
};
int RunDeaf(Process* process, const DeafRole& role);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_ROLES_H_
