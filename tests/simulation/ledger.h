#ifndef LOCKSTEP_TESTS_SIMULATION_LEDGER_H_
#define LOCKSTEP_TESTS_SIMULATION_LEDGER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/disk.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {
namespace simulation {

// A ledger that follows the end and the changes in a run's record, and knows which values workers may compute with.
// These are the values of an undisturbed run with the changes that are, or once were, on record, because a killed chief
// may drop the newest change. Hooks announce their changes, because these are recorded only with the next checkpoint.
// If the newest assignment on record failed, the run that hooks change afterwards may lack it.
class Ledger {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  // `world` and `disk` must outlive this object.
  Ledger(World* world, Disk* disk, std::string logdir, const config::v1::RunSpec& config, const RunRules& rules);

  // Sets the configuration that applies until there is a record.
  void set_config(const config::v1::RunSpec& config) { config_ = config; }
  // Reads the record as a starting chief would. Unless `durable`, a power cut may lose the record, so its end does not
  // count.
  void Learn(bool durable = true);
  // Called when another incarnation of the chief begins to serve. Changes that hooks announced in earlier incarnations,
  // and that are not on record, are lost. An incarnation that was taken over continues its own run with these changes
  // until it needs the disk.
  void Restart(const Process* chief);
  // Returns true if `chief` is the chief of the last Restart.
  bool Serves(const Process* chief) const { return chief == chief_; }
  // Called when a hook of `chief` is about to make this change. Returns false if the current run already has it, or
  // belongs to another chief.
  bool Expect(const Process* chief, const RunChanges::Assignment& assignment);
  bool Expect(const Process* chief, int64_t step, const RunChanges::Settings& settings);
  // Called when the newest change for which Expect returned true was not made.
  void Retract();
  // Returns the earliest end that was ever recorded, or kNoEnd if there is none.
  int64_t recorded_end() const { return recorded_end_; }
  // Returns true if the record says that the run has finished.
  bool finished() const { return finished_; }
  // Returns the changes on record.
  const RunChanges& recorded() const { return recorded_; }
  // Returns the run with all changes on record, and with changes by hooks that are not yet on record.
  const Reference& present() const { return *present_; }
  // Returns true if the run ends at `step` by itself, with the changes that are or once were on record. A recorded end
  // remains even if a later incarnation resumes an earlier checkpoint and makes changes with which the run would not
  // end there.
  bool WasDue(int64_t step) const;

  // Returns OK if an undisturbed run computes the step with these values. Sets `assignments` to the assignments of such
  // a run; if there are several, of the run with the fewest.
  absl::Status CheckValues(int64_t step, VariableValues values, std::vector<RunChanges::Assignment>* assignments);
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values);
  // Returns OK if the current run would save this checkpoint or, unless it is `listed`, if any run that was ever on
  // record would.
  absl::Status CheckCheckpoint(const BundleReader& reader, bool listed);
  // Returns OK if the record has all changes that the checkpoint counts.
  absl::Status CheckRecorded(const BundleReader& reader);
  bool AreCanaryValues(VariableValues values) const { return present_->AreCanaryValues(values); }

 private:
  // Returns `changes` together with any changes that hooks have announced and that it lacks.
  RunChanges WithExpected(RunChanges changes) const;
  // Returns the run with these changes. Adds it if it is new.
  const Reference* Know(RunChanges changes);
  // Returns OK if `check` returns OK for any known run.
  absl::Status CheckAny(const std::function<absl::Status(const Reference&)>& check);

  World* const world_;
  Disk* const disk_;
  const std::string logdir_;
  config::v1::RunSpec config_;
  const RunRules rules_;
  std::vector<std::unique_ptr<const Reference>> known_;
  const Reference* present_ = nullptr;
  RunChanges recorded_;
  // The changes announced by hooks, in order, without the settings at step 0.
  RunChanges expected_;
  bool expects_settings_ = false;  // the newest one is a change of settings
  const Process* chief_ = nullptr;
  // The runs of earlier chiefs, some of which were taken over.
  std::map<const Process*, RunChanges> earlier_;
  int64_t recorded_end_ = kNoEnd;
  bool finished_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_LEDGER_H_
