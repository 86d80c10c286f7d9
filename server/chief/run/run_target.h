#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_TARGET_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_TARGET_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The global step at which a run ends, and why. What decides it is in the run's record before it counts, so that every
// life of the chief comes to the same step:
//
//   configuration       record                                     ends at
//   any                 an end that is not reached                  that end
//   steps: N            (any other)                                 N
//   additional_steps: N the same N, not reached                     base + N of the record
//   additional_steps: N none, another N, or reached                 checkpoint's step + N, a new base
//   unbounded           (any other)                                 never
//
// Reached is a step whose checkpoint is there, in a record that says `finished`: a chief that was killed after the
// save, and before it had told all, only ends once more. Pure; a value.
class RunTarget {
 public:
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  // `restored` is the global step of the checkpoint that the run continues from, 0 without one. `record` is null in a
  // new run.
  static RunTarget Resolve(const config::v1::TrainingConfig& config, const v1::RunRecord* record, int64_t restored);

  int64_t total_steps() const { return end_ ? end_->step() : configured_; }
  // As configured, without an end that was asked for.
  int64_t configured() const { return configured_; }

  // Somebody asked for the end at `step`; a later one than before changes nothing. Of several the first reason stays:
  // an end may turn out to come a step earlier. Returns whether the record changes.
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
