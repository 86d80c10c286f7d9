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
#include "absl/strings/string_view.h"
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

// The rules that change a run, or end it before its configured number of steps. The values -1, 0 and empty disable a
// rule.
struct RunRules {
  // The number of batches, over all steps and slots, after which the input ends.
  int64_t batches = -1;
  // The step and the slot whose report requests the end of the run.
  int64_t stop_step = -1;
  int64_t stop_slot = 0;
  // The step and the slot whose loss is not finite. The run ends before this step.
  int64_t non_finite_step = -1;
  int64_t non_finite_slot = 0;
  // If true, that step instead changes nothing and the run continues, as with training.skip_non_finite.
  bool skips_non_finite = false;

  // If true, a program follows the run. It counts the updates that it sees, and takes up to `hook_time` for each.
  bool followed = false;
  absl::Duration hook_time;
  // The program ends the run when the loss has not improved for `patience` checks. It checks after every multiple of
  // `check_every` steps.
  int64_t patience = 0;
  int64_t check_every = 1;
  // The program sets variables after these steps and after each multiple of `assign_every`.
  std::vector<int64_t> assign_at;
  int64_t assign_every = 0;
  // If true, chance decides whether each assignment is made, so a later incarnation may not repeat those of an earlier
  // one.
  bool assigns_by_chance = false;
  // The program changes settings after these steps and after each multiple of `change_every`.
  std::vector<int64_t> change_at;
  int64_t change_every = 0;
  // The program's reaction to a stop signal: it leaves its loop, or requests the end through its session.
  enum class OnStop { kNothing, kLeaves, kRequestsEnd };
  OnStop on_stop = OnStop::kNothing;

  bool AssignsAfter(int64_t step) const;
  bool ChangesAfter(int64_t step) const;
  std::string Describe() const;
};

// The changes of a run that its record lists, except those made by its rules.
struct RunChanges {
  struct Assignment {
    int64_t step = 0;
    std::vector<std::string> variables;
    bool operator==(const Assignment& other) const { return step == other.step && variables == other.variables; }
  };
  // In order of their steps.
  std::vector<Assignment> assignments;
  struct Settings {
    float rate = 0;
    int64_t batch_size = 1;
    bool operator==(const Settings& other) const { return rate == other.rate && batch_size == other.batch_size; }
  };
  // The settings and the step from which they apply, in order. The first step is 0.
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

// The model of a life. It has a counter to which every slot adds, an average of what they add, constant variables, and
// a few numbers whose gradients depend on the step, the slot, each other and chance. A contribution that is lost,
// doubled or mixed up therefore changes these numbers.
const v1::ModelSpec& TinyModelSpec();
// Returns true if the variable is constant.
bool IsConstant(int64_t variable);

// Callbacks from the worker that computes the model.
struct ComputeHooks {
  // Called before each slot with the worker's values. May block.
  std::function<void(const SlotKey& key, VariableValues values)> before_slot;
  // Called before each gradient is handed over. May block.
  std::function<void()> before_gradient;
};
Workload NewTinyWorkload(const config::v1::RunSpec& config, const RunRules& rules, ComputeHooks hooks);

// Returns the type of a variable of the model, or of its state.
v1::DataType TypeOf(absl::string_view name);
// Returns the values that an assignment sets for a variable of the model or one of its states. Those of an integer
// variable have its bits.
std::vector<float> AssignedValues(const std::string& name);
// Returns the suffixes of a variable's optimizer states, such as "/Momentum".
std::vector<std::string> StateNames(const config::v1::OptimizerConfig& optimizer);

// The state of a program's counting hook: the last step that it has seen, and a digest of all losses.
struct SeenUpdates {
  int64_t step = 0;
  uint64_t losses = 0;
  void See(const v1::StepCommit& commit);
  std::string ToString() const { return absl::StrCat(step, " ", losses); }
};
// The name of the counting hook.
extern const char kCountingHook[];

// An undisturbed run with the same rules and changes, computed step by step. It is a plain loop over each step's slots,
// with Lockstep's formulas but none of its code.
class Reference {
 public:
  // Supports Momentum and Adam, and any number of slots, but no compression.
  Reference(const config::v1::RunSpec& config, const RunRules& rules, RunChanges changes);
  // Computes the run of `base` with different changes. Shares the states before the first difference.
  Reference(const Reference& base, RunChanges changes);

  const RunChanges& changes() const { return changes_; }
  // Returns the global step at which the run ends if no end is requested.
  int64_t LastStep() const;

  // Returns OK if these are the values at the step. Otherwise returns an error with the first difference.
  absl::Status CheckValues(int64_t step, VariableValues values) const;
  // Like CheckValues, but for variables, their states and global_step by name.
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) const;
  // Returns true if these are the values of the canary, which a worker computes when it joins.
  bool AreCanaryValues(VariableValues values) const;
  // Returns OK if the whole checkpoint is readable and correct for its step, including optimizer and program state.
  absl::Status CheckCheckpoint(const BundleReader& reader) const;

  using Values = std::vector<std::vector<float>>;  // by variable
  struct State {
    Values values;              // then the state of update ops
    std::vector<Values> slots;  // by state, for trainable variables
    float powers[2] = {0, 0};   // for Adam
    double mean_loss = 0;       // of the step that led to this state
    SeenUpdates seen;
  };
  // A slot or a batch, and the state with whose values its gradient was computed.
  struct Contribution {
    SlotKey key;
    const State* base = nullptr;
  };
  // The results of a contribution.
  struct Gradient {
    Values values;  // for trainable variables
    float loss = 0;
    std::vector<float> counts;
  };
  // The following functions are building blocks of runs whose steps depend on the order of arrival (StreamLedger).
  State First() const;
  Gradient Compute(const Contribution& contribution, const RunChanges::Settings& settings) const;
  // Returns the state after an update with the mean of the gradients, which are summed along a tree in the given order.
  State After(const State& state, const RunChanges::Settings& settings,
              absl::Span<const Gradient* const> gradients) const;
  absl::Status CheckValues(const State& state, int64_t step, VariableValues values) const;
  absl::Status CheckNamed(const State& state, int64_t step, absl::Span<const train::NamedTensor> values) const;
  // Reads the values for CheckNamed. global_step comes first.
  absl::StatusOr<std::vector<train::NamedTensor>> ReadNamed(const BundleReader& reader) const;

 private:
  // Returns the state at the step. Computes the states up to it that are missing.
  const State& At(int64_t step) const;
  State Next(const State& state, int64_t step) const;
  // Updates an element of a variable and its states with a gradient.
  void Update(const State& state, float rate, float gradient, int variable, int element, State* next) const;
  // Folds what a slot adds to the counter into the average.
  void AddToAverage(const Gradient& gradient, State* next) const;
  void Assign(int64_t step, State* state) const;
  // Returns OK if the step's checkpoint holds this state for the program.
  absl::Status CheckSessionState(int64_t step, const v1::SessionState& state) const;

  const config::v1::RunSpec config_;
  const RunRules rules_;
  const RunChanges changes_;
  const std::vector<std::string> state_names_;
  mutable std::vector<std::shared_ptr<const State>> states_;  // by step
  Values canary_;
};

// Returns the program's state in the checkpoint, or an empty state if there is none.
absl::StatusOr<v1::SessionState> SessionStateOf(const BundleReader& reader);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_REFERENCE_H_
