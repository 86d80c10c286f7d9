#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_IDENTITY_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The id of a run, and how a chief treats a worker that has served another run. If a chief that should continue a run
// finds an empty logdir, for example because its disk is not mounted or it starts on a different machine, it begins a
// new run. The old run's workers can detect that, because the chief that they find has a different run id and an
// earlier step.

// Returns the run id for a randomly drawn number: 16 hexadecimal digits.
std::string RunIdText(uint64_t drawn);

// The circumstances in which a chief's run began, for ShowsWrongLogdir.
struct RunOrigin {
  // True if the logdir was empty or missing when the chief started, and no new run was requested.
  bool unexpected = false;
  // Time at which the run began, after the first worker had declared the model. Absent before then.
  absl::optional<absl::Time> begun;
  // The last committed step.
  int64_t step = 0;
};

// After an unexpected start, a worker of another run can end the run for this long. Workers that have lost their chief
// look for it every second, so a worker that appears later is a stray, and must not end a run that has trained in the
// meantime.
constexpr absl::Duration kOtherRunLimit = absl::Minutes(1);

// Returns true if the chief must have the wrong logdir, because a worker has served another run up to `step`.
bool ShowsWrongLogdir(const RunOrigin& origin, int64_t step, absl::Time now);

// Returns FailedPrecondition for a worker that is refused because it has served a run other than `run_id`. The message
// names both.
absl::Status RefusedForItsRun(const v1::OpenSessionRequest& request, const std::string& run_id);

// Returns the error, with kExitBadConfiguration, that ends a chief because of a worker from another run. `logdir` may
// be empty.
absl::Status WrongLogdir(const v1::RunRecord::OtherRun& other, const std::string& logdir, const std::string& run_id);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_IDENTITY_H_
