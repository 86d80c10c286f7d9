#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_TARGET_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_TARGET_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The global step at which a run ends, and the reason. The run's record holds the decision before it takes effect, so
// that every incarnation of the chief ends at the same step:
//
//   configuration       record                                     ends at
//   any                 an end that is not reached                  that end
//   steps: N            (any other)                                 N
//   additional_steps: N the same N, not reached                     base + N of the record
//   additional_steps: N none, another N, or reached                 checkpoint's step + N, a new base
//   unbounded           (any other)                                 never
//
// A step is reached if its checkpoint exists and the record says `finished`. A chief that is killed after the save, but
// before it has notified all workers, simply ends again. Pure; a value.
class RunTarget {
 public:
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  // `restored` is the global step of the checkpoint that the run continues from; 0 without one. `record` is null in a
  // new run.
  static RunTarget Resolve(const config::v1::TrainingConfig& config, const v1::RunRecord* record, int64_t restored);

  int64_t total_steps() const { return end_ ? end_->step() : configured_; }
  // The configured end, ignoring any requested end.
  int64_t configured() const { return configured_; }
  // The reason why the run ends before its configured end; empty if it does not.
  std::string reason() const { return end_ ? end_->reason() : ""; }

  // Records a request to end at `step`. Changes nothing unless `step` is before the current target. Keeps the reason of
  // the first request, because the same end may later turn out to be one step earlier. Returns true if the record
  // changes.
  bool EndAt(int64_t step, const std::string& reason);

  // Sets `counted` and `end`.
  void FillRecord(v1::RunRecord* record) const;

 private:
  int64_t configured_ = 0;
  absl::optional<v1::RunRecord::CountedSteps> counted_;
  absl::optional<v1::RunRecord::RequestedEnd> end_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_TARGET_H_
