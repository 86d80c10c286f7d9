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

// What ends a run before its configured steps, or acts on it, by rule. -1, 0 and empty: nothing.
struct RunRules {
  // So many batches, counted over steps and slots; then the input ends.
  int64_t batches = -1;
  // The report of this slot says that the run is to end.
  int64_t stop_step = -1;
  int64_t stop_slot = 0;
  // The loss of this slot is not finite, which ends the run before its step.
  int64_t non_finite_step = -1;
  int64_t non_finite_slot = 0;
  // With training.skip_non_finite: that step changes nothing instead.
  bool skips_non_finite = false;

  // A program follows the run. It counts the updates that it sees, taking up to `hook_time` for each.
  bool followed = false;
  absl::Duration hook_time;
  // It stops when the loss has not improved in so many looks, one at every multiple of `check_every` steps.
  int64_t patience = 0;
  int64_t check_every = 1;
  // It sets variables after these steps, and after each multiple of `assign_every`.
  std::vector<int64_t> assign_at;
  int64_t assign_every = 0;
  // Each time only as chance has it: a later life may not repeat what an earlier one has set.
  bool assigns_by_chance = false;
  // It changes settings after these steps, and after each multiple of `change_every`.
  std::vector<int64_t> change_at;
  int64_t change_every = 0;
  // What it does when it is asked to stop, besides: leaves its loop, or requests the end of its session.
  enum class OnStop { kNothing, kLeaves, kRequestsEnd };
  OnStop on_stop = OnStop::kNothing;

  bool AssignsAfter(int64_t step) const;
  bool ChangesAfter(int64_t step) const;
  std::string Describe() const;
};

// What has changed a run besides its rules, as its record has it.
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
  // Settings from each step on, in order; the first are those of step 0.
  std::vector<std::pair<int64_t, Settings>> settings;

  const Settings& SettingsAt(int64_t step) const;
  bool operator==(const RunChanges& other) const {
    return assignments == other.assignments && settings == other.settings;
  }
};
RunChanges::Settings SettingsOf(const config::v1::RunSpec& config);
// `config`: of a run that has no record yet.
RunChanges ChangesOf(const config::v1::RunSpec& config);
RunChanges ChangesOf(const v1::RunRecord& record);

// The model of a life: a few numbers whose gradient depends on the step, the slot, each other and chance, so that
// whatever is lost, doubled or mixed up changes them; and a counter to which every slot adds.
const v1::ModelSpec& TinyModelSpec();

// What a model needs to know of who computes it.
struct ComputeHooks {
  // Called before each slot with the values that the worker has. May block.
  std::function<void(const SlotKey& key, VariableValues values)> before_slot;
  // Called before each gradient is handed over. May block.
  std::function<void()> before_gradient;
};
Workload NewTinyWorkload(const config::v1::RunSpec& config, const RunRules& rules, ComputeHooks hooks);

// What a variable of the model, or a state of it, is set to when it is set.
std::vector<float> AssignedValues(const std::string& name);
// The states of a variable by name ("/Momentum"), as its optimizer has them.
std::vector<std::string> StateNames(const config::v1::OptimizerConfig& optimizer);

// What the counting hook of a program keeps: the step that it has seen, and a number into which all losses went.
struct SeenUpdates {
  int64_t step = 0;
  uint64_t losses = 0;
  void See(const v1::StepCommit& commit);
  std::string ToString() const { return absl::StrCat(step, " ", losses); }
};
// Its name.
extern const char kCountingHook[];

// An undisturbed run with the same rules and changes, step by step: a plain loop over the slots of each step, with
// Lockstep's formulas and nothing of its code.
class Reference {
 public:
  // Momentum or Adam and R slots as configured; no compression.
  Reference(const config::v1::RunSpec& config, const RunRules& rules, RunChanges changes);
  // The run of `base` with other changes: shares with it the states before the first difference.
  Reference(const Reference& base, RunChanges changes);

  const RunChanges& changes() const { return changes_; }
  // The global step at which the run ends if nobody asks for the end.
  int64_t LastStep() const;

  // OK when these are the values at the step; else the first difference.
  absl::Status CheckValues(int64_t step, VariableValues values) const;
  // The same of variables, their states and global_step by name.
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values) const;
  // Whether these are the values of the canary, which a worker computes when it joins.
  bool AreCanaryValues(VariableValues values) const;
  // OK when the checkpoint reads through and is that of its step, optimizer state and what the program keeps included.
  absl::Status CheckCheckpoint(const BundleReader& reader) const;

 private:
  using Values = std::vector<std::vector<float>>;  // by variable
  struct State {
    Values values;
    std::vector<Values> slots;  // by state, of the trainable ones
    float powers[2] = {0, 0};   // of Adam
    double mean_loss = 0;       // of the step that has made it
    SeenUpdates seen;
  };

  // Computes what is not yet computed.
  const State& At(int64_t step) const;
  State Next(const State& state, int64_t step) const;
  // A variable's element and its states after a gradient.
  void Update(const State& state, float rate, float gradient, int variable, int element, State* next) const;
  void Assign(int64_t step, State* state) const;
  // OK when this is what the checkpoint of the step holds for the program.
  absl::Status CheckSessionState(int64_t step, const v1::SessionState& state) const;

  const config::v1::RunSpec config_;
  const RunRules rules_;
  const RunChanges changes_;
  const std::vector<std::string> state_names_;
  mutable std::vector<std::shared_ptr<const State>> states_;  // by step
  Values canary_;
};

// What the checkpoint has for a program; empty when it has nothing.
absl::StatusOr<v1::SessionState> SessionStateOf(const BundleReader& reader);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_REFERENCE_H_
