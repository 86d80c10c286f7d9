#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_REFERENCE_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/session_state.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {
namespace simulation {

// The rules that end a run before its configured steps, or change it. The values -1, 0 and empty disable a rule.
struct RunRules {
  // The number of batches, over all steps and slots, after which the input ends.
  int64_t batches = -1;
  // The slot whose report requests the end of the run.
  int64_t stop_step = -1;
  int64_t stop_slot = 0;
  // The slot whose loss is not finite, which ends the run before its step.
  int64_t non_finite_step = -1;
  int64_t non_finite_slot = 0;
  // With training.skip_non_finite, this step changes nothing and the run continues.
  bool skips_non_finite = false;

  // If true, a program follows the run. It counts the updates that it sees and takes up to `hook_time` for each.
  bool followed = false;
  absl::Duration hook_time;
  // The program ends the run when the loss has not improved in `patience` checks, one at every multiple of
  // `check_every` steps.
  int64_t patience = 0;
  int64_t check_every = 1;
  // The program sets variables after these steps, and after each multiple of `assign_every`.
  std::vector<int64_t> assign_at;
  int64_t assign_every = 0;
  // Chance decides each assignment, so a later incarnation may not repeat an earlier one's.
  bool assigns_by_chance = false;
  // The program changes settings after these steps, and after each multiple of `change_every`.
  std::vector<int64_t> change_at;
  int64_t change_every = 0;
  // The program's own reaction to a stop signal: it leaves its loop, or requests the end of its session.
  enum class OnStop { kNothing, kLeaves, kRequestsEnd };
  OnStop on_stop = OnStop::kNothing;

  bool AssignsAfter(int64_t step) const;
  bool ChangesAfter(int64_t step) const;
  std::string Describe() const;
};

// The changes of a run other than by its rules, as its record lists them.
struct RunChanges {
  struct Assignment {
    int64_t step = 0;
    std::vector<std::string> variables;
    bool operator==(const Assignment& other) const { return step == other.step && variables == other.variables; }
  };
  // In order.
  std::vector<Assignment> assignments;
  struct Settings {
    float rate = 0;
    int64_t batch_size = 1;
    bool operator==(const Settings& other) const { return rate == other.rate && batch_size == other.batch_size; }
  };
  // The settings from each step on, in order, beginning with step 0.
  std::vector<std::pair<int64_t, Settings>> settings;

  const Settings& SettingsAt(int64_t step) const;
  bool operator==(const RunChanges& other) const {
    return assignments == other.assignments && settings == other.settings;
  }
};
RunChanges::Settings SettingsOf(const config::v1::RunSpec& config);
// Returns the changes of a run that has no record yet.
RunChanges ChangesOf(const config::v1::RunSpec& config);
RunChanges ChangesOf(const v1::RunRecord& record);

// The model of a life. It has a few numbers whose gradient depends on the step, the slot, each other and chance, so
// that any contribution that is lost, doubled or mixed up changes them, a counter to which every slot adds, and
// constant variables.
const v1::ModelSpec& TinyModelSpec();
// Returns true if the variable is constant.
bool IsConstant(int64_t variable);

// Callbacks of the worker that computes the model.
struct ComputeHooks {
  // Called before each slot with the values that the worker has. May block.
  std::function<void(const SlotKey& key, VariableValues values)> before_slot;
  // Called before each gradient is handed over. May block.
  std::function<void()> before_gradient;
};
Workload NewTinyWorkload(const config::v1::RunSpec& config, const RunRules& rules, ComputeHooks hooks);

// Returns the values that an assignment gives to a variable of the model or to one of its states.
std::vector<float> AssignedValues(const std::string& name);
// Returns the names of the optimizer's states of a variable ("/Momentum").
std::vector<std::string> StateNames(const config::v1::OptimizerConfig& optimizer);

// The state of a program's counting hook: the last step that it has seen, and a digest of all losses.
struct SeenUpdates {
  int64_t step = 0;
  uint64_t losses = 0;
  void See(const v1::StepCommit& commit);
  std::string ToString() const { return absl::StrCat(step, " ", losses); }
};
// The counting hook's name.
extern const char kCountingHook[];

// Computes an undisturbed run with the same rules and changes, step by step. It is a plain loop over the slots of each
// step, with Lockstep's formulas but none of its code.
class Reference {
 public:
  // Momentum or Adam and R slots as configured; no compression.
  Reference(const config::v1::RunSpec& config, const RunRules& rules, RunChanges changes);
  // The run of `base` with other changes. Shares the states before the first difference.
  Reference(const Reference& base, RunChanges changes);

  const RunChanges& changes() const { return changes_; }
  // Returns the global step at which the run ends if no end is requested.
  int64_t LastStep() const;

  // Returns OK if these are the values at the step, and otherwise the first difference.
  absl::Status CheckValues(int64_t step, VariableValues values) const;
  // Like CheckValues, for variables, their states and global_step by name.
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) const;
  // True if these are the values of the canary, which a worker computes when it joins.
  bool AreCanaryValues(VariableValues values) const;
  // Returns OK if the whole checkpoint is readable and right for its step, including optimizer and program state.
  absl::Status CheckCheckpoint(const BundleReader& reader) const;

  using Values = std::vector<std::vector<float>>;  // by variable
  struct State {
    Values values;
    std::vector<Values> slots;  // by state, of the trainable ones
    float powers[2] = {0, 0};   // of Adam
    double mean_loss = 0;       // of the step that has made it
    SeenUpdates seen;
  };
  // A slot or batch, and the state whose values its gradient was computed with.
  struct Contribution {
    SlotKey key;
    const State* base = nullptr;
  };
  // A contribution.
  struct Gradient {
    Values values;  // of the trainable variables
    float loss = 0;
    std::vector<float> counts;
  };
  // The parts of which a run is made whose steps depend on the order of arrival (StreamLedger).
  State First() const;
  Gradient Compute(const Contribution& contribution, const RunChanges::Settings& settings) const;
  // The state after an update with the mean of the gradients, which are added in this order along the tree.
  State After(const State& state, const RunChanges::Settings& settings,
              absl::Span<const Gradient* const> gradients) const;
  absl::Status CheckValues(const State& state, int64_t step, VariableValues values) const;
  absl::Status CheckNamed(const State& state, int64_t step, absl::Span<const train::NamedTensor> values) const;
  // Reads what CheckNamed checks; global_step comes first.
  absl::StatusOr<std::vector<train::NamedTensor>> ReadNamed(const BundleReader& reader) const;

 private:
  // Computes the states that are missing.
  const State& At(int64_t step) const;
  State Next(const State& state, int64_t step) const;
  // Updates a variable's element and its states by a gradient.
  void Update(const State& state, float rate, float gradient, int variable, int element, State* next) const;
  void Assign(int64_t step, State* state) const;
  // Returns OK if the checkpoint of the step holds this state for the program.
  absl::Status CheckSessionState(int64_t step, const v1::SessionState& state) const;

  const config::v1::RunSpec config_;
  const RunRules rules_;
  const RunChanges changes_;
  const std::vector<std::string> state_names_;
  mutable std::vector<std::shared_ptr<const State>> states_;  // by step
  Values canary_;
};

// Returns the program's state in the checkpoint; empty if there is none.
absl::StatusOr<v1::SessionState> SessionStateOf(const BundleReader& reader);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_REFERENCE_H_
