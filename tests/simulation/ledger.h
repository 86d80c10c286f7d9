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

// Follows the end and the changes in a run's record, and knows which values workers may compute with. They are the
// values of an undisturbed run with the changes that are, or once were, on the record, because a chief that is killed
// may drop the newest change. What hooks change is on the record only with the next checkpoint, so the hooks announce
// it. The newest assignment on the record may be one that failed, so what hooks change then may be without it.
class Ledger {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  // Both must outlive this.
  Ledger(World* world, Disk* disk, std::string logdir, const config::v1::RunSpec& config, const RunRules& rules);

  // The configuration that applies until there is a record.
  void set_config(const config::v1::RunSpec& config) { config_ = config; }
  // Reads the record as a starting chief would. Unless `durable`, a power cut may lose it, so its end does not count.
  void Learn(bool durable = true);
  // Another incarnation of the chief serves: what hooks have announced to earlier ones and no record has is lost. One
  // that was taken over continues its own run with it, until it needs the disk.
  void Restart(const Process* chief);
  // True if it is the chief of the last Restart.
  bool Serves(const Process* chief) const { return chief == chief_; }
  // A hook of `chief` is about to make this change. Returns false if the present run has it already, or is another
  // chief's.
  bool Expect(const Process* chief, const RunChanges::Assignment& assignment);
  bool Expect(const Process* chief, int64_t step, const RunChanges::Settings& settings);
  // The newest change for which Expect returned true was not made.
  void Retract();
  // The earliest end that was ever recorded; kNoEnd without one.
  int64_t recorded_end() const { return recorded_end_; }
  // True if the record says that the run has finished.
  bool finished() const { return finished_; }
  // The changes that the record has.
  const RunChanges& recorded() const { return recorded_; }
  // The run with all changes of the record, and those of hooks that are not on it yet.
  const Reference& present() const { return *present_; }
  // True if the run ends at `step` by itself, with the changes that are or once were on the record. A recorded end
  // stays, even when a later incarnation resumes an earlier checkpoint and makes changes with which the run would not
  // end there.
  bool WasDue(int64_t step) const;

  // Returns OK if an undisturbed run computes the step with these values. Sets `assignments` to those of such a run,
  // the one with the fewest.
  absl::Status CheckValues(int64_t step, VariableValues values, std::vector<RunChanges::Assignment>* assignments);
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values);
  // Returns OK if the present run would save this checkpoint, or, if it is not `listed`, any run that ever was on
  // record.
  absl::Status CheckCheckpoint(const BundleReader& reader, bool listed);
  // Returns OK if the record has all changes that the checkpoint counts.
  absl::Status CheckRecorded(const BundleReader& reader);
  bool AreCanaryValues(VariableValues values) const { return present_->AreCanaryValues(values); }

 private:
  // Adds the changes that hooks have announced and `changes` lacks.
  RunChanges WithExpected(RunChanges changes) const;
  // Returns the run with these changes, and adds it if it is new.
  const Reference* Know(RunChanges changes);
  // Returns OK if `check` does for any known run.
  absl::Status CheckAny(const std::function<absl::Status(const Reference&)>& check);

  World* const world_;
  Disk* const disk_;
  const std::string logdir_;
  config::v1::RunSpec config_;
  const RunRules rules_;
  std::vector<std::unique_ptr<const Reference>> known_;
  const Reference* present_ = nullptr;
  RunChanges recorded_;
  // The changes that hooks have announced, in order, without the settings at step 0.
  RunChanges expected_;
  bool expects_settings_ = false;  // the newest is a change of settings
  const Process* chief_ = nullptr;
  // The runs of earlier chiefs, some of which were taken over.
  std::map<const Process*, RunChanges> earlier_;
  int64_t recorded_end_ = kNoEnd;
  bool finished_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_LEDGER_H_
