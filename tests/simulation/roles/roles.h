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
#include "lockstep/common/step/step_frame.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/build.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace simulation {

// What the programs of a run do in a process of the simulation: their mains, line by line, with the simulated network
// in place of gRPC. Each returns the exit code.

// What a program says of its build: the same for every build on every machine, since it comes into files and frames,
// and a life must not depend on their lengths.
v1::BuildInfo SimulatedBuild();

struct ChiefRole {
  config::v1::RunSpec config;
  // Other than what the logdir may have.
  bool change_settings = false;
  // Chief::Options.
  int64_t old_version_bytes = 0;
  std::string logdir;
  // "host:port"; port 0 takes any.
  std::string listen;
  std::string port_file;     // empty: none
  std::string address_file;  // empty: none
  absl::Duration lock_wait;
  // Told to those who watch the life, by threads of the chief.
  // It begins at this step; -1 when there is no model yet.
  std::function<void(Process*, int64_t generation, int64_t step)> on_serving;
  std::function<void(Process*, int64_t generation, const StepReplyFrame&)> on_reply;
  std::function<void(Process*, const Process* worker, Instant at)> on_contribution;
  std::function<void(const std::string& request)> on_open_session;
  // How Wait has returned, and the last committed step; -1 when there was no model yet.
  std::function<void(Process*, const absl::Status&, int64_t step)> on_waited;
};
int RunChief(Process* process, const ChiefRole& role);

// The values of a step, as somebody has read them.
using OnRead = std::function<void(Process*, int64_t step, absl::Span<const train::NamedTensor> values)>;

// The chief in a program that follows the run, with hooks. Process::Ask: kEnd, kAssign and kChange.
struct ProgramRole {
  ChiefRole chief;
  RunRules rules;
  // Told by the program's hooks and threads.
  OnRead on_read;
  // Variables were set, and the program knows it; `by_hook`: what a hook has set, in this life or in one before.
  std::function<void(Process*, const absl::optional<RunChanges::Assignment>& by_hook)> on_assigned;
  // The run has these settings, and the program knows it.
  std::function<void(Process*, const RunChanges::Settings&)> on_changed;
  // Its hooks are about to see the update that makes this step; they have ended the run at a step.
  std::function<void(Process*, int64_t step)> on_hooks_see;
  std::function<void(Process*, int64_t step)> on_hooks_end;
  std::function<void(Process*, const std::string& what)> on_wrong;
};
int RunProgram(Process* process, const ProgramRole& role);

struct WorkerRole {
  std::string name;
  std::string master;
  absl::optional<int64_t> startup_delay_steps;
  // What a slot takes.
  absl::Duration slot_time;
  RunRules rules;
  // Told before each slot.
  std::function<void(Process*, const SlotKey&, VariableValues)> on_slot;
  std::function<void(Process*, const absl::Status&)> on_ended;
};
// Process::Ask: kEnd, by a call, and kEndWithBlock, in the report of its next block.
int RunWorker(Process* process, const WorkerRole& role);

// A program that reads the variables a few times while others train.
struct ReaderRole {
  std::string master;
  OnRead on_read;
};
int RunReader(Process* process, const ReaderRole& role);

// `lockstep run`. `start` starts a program by its command.
struct LauncherRole {
  int workers = 1;
  std::function<Process*(const std::vector<std::string>& command)> start;
};
int RunLauncher(Process* process, const LauncherRole& role);
// Where the launcher has its chief write the port.
extern const char kPortFile[];

// A program that is no worker: connects again and again and sends what an honest one would not.
struct StrangerRole {
  std::string target;
  // Sessions and generations that it has heard of.
  std::function<int64_t()> generation;
};
int RunStranger(Process* process, const StrangerRole& role);

// A worker of another make, which asks for tokens as an honest one does, and contributes to what its token is not for.
struct ImpostorRole {
  std::string target;
  // An OpenSessionRequest of an honest worker; empty: none has come.
  std::function<std::string()> open_session;
};
int RunImpostor(Process* process, const ImpostorRole& role);

// A worker of another make that asks for tokens, on one stream of its session after the other, and reads no reply.
struct DeafRole {
  ImpostorRole peer;
  // This stream is over for the chief, since another of its session has come, or since its last frame broke a rule or
  // was a goodbye: the chief has to end it soon.
  std::function<void(std::shared_ptr<Call> call, bool replaced)> on_over;
};
int RunDeaf(Process* process, const DeafRole& role);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_ROLES_H_
