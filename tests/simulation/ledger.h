#ifndef LOCKSTEP_TESTS_SIMULATION_LEDGER_H_
#define LOCKSTEP_TESTS_SIMULATION_LEDGER_H_

#include <cstdint>
#include <functional>
#include <limits>
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

// What a run's record says of its end and its changes, and which values may be computed with because of that: those of
// an undisturbed run with the changes that are, or once were, on the record. A chief that is killed may drop the
// newest.
class Ledger {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  // Both must outlive this.
  Ledger(World* world, Disk* disk, std::string logdir, const config::v1::RunSpec& config, const RunRules& rules);

  // Where there is no record yet.
  void set_config(const config::v1::RunSpec& config) { config_ = config; }
  // Reads the record, as whoever starts now would. Not `durable`: it may be lost with the power.
  void Learn(bool durable = true);
  // That somebody asked for; the earliest that was ever recorded.
  int64_t recorded_end() const { return recorded_end_; }
  // The record says that the run has ended well.
  bool finished() const { return finished_; }
  // With all changes of the record.
  const Reference& present() const { return *present_; }
  // Whether the run ends there by itself with the changes of the record, or with those that once were on it: an end on
  // record stays, even when a later life, from an earlier checkpoint, makes changes with which none would be due.
  bool WasDue(int64_t step) const;

  // OK when an undisturbed run computes the step with these values. `assignments`: how often variables
  // were set in it, at least.
  absl::Status CheckValues(int64_t step, VariableValues values, int64_t* assignments);
  absl::Status CheckNamed(int64_t step, absl::Span<const train::NamedTensor> values);
  // OK when this is what the present run has saved; or, if it is not `listed`, any that ever was.
  absl::Status CheckCheckpoint(const BundleReader& reader, bool listed);
  bool AreCanaryValues(VariableValues values) const { return present_->AreCanaryValues(values); }

 private:
  // One that is known already, or a new one.
  const Reference* Know(RunChanges changes);
  // OK when `check` is for one of the known.
  absl::Status CheckAny(const std::function<absl::Status(const Reference&)>& check);

  World* const world_;
  Disk* const disk_;
  const std::string logdir_;
  config::v1::RunSpec config_;
  const RunRules rules_;
  // Those with fewer assignments before those with more.
  std::vector<std::unique_ptr<const Reference>> known_;
  const Reference* present_ = nullptr;
  int64_t recorded_end_ = kNoEnd;
  bool finished_ = false;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_LEDGER_H_
