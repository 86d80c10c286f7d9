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

// The id of a run, and what a chief does about a worker that has served another one. If a chief that is to continue a
// run finds an empty logdir, because its disk is not mounted or it starts on another machine, it begins a new run. The
// workers of the old run can tell: their chief has another id and an earlier step.

// Returns the id that stands for a drawn number: 16 hexadecimal digits.
std::string RunIdText(uint64_t drawn);

// The chief's side of the judgment.
struct RunOrigin {
  // The logdir was empty when the chief started, or there is none, and the chief was not told to begin a new run.
  bool unexpected = false;
  // The time when the first worker had declared the model; absent before that.
  absl::optional<absl::Time> begun;
  // The last committed step.
  int64_t step = 0;
};

// How long a run that has begun unexpectedly can still end because of a worker of another run. Workers that have lost
// their chief look for it every second. Later, such a worker is a stray, and must not end a run that has trained since.
constexpr absl::Duration kOtherRunLimit = absl::Minutes(1);

// Returns true if a worker that has served another run up to `step` shows that the chief has the wrong logdir.
bool ShowsWrongLogdir(const RunOrigin& origin, int64_t step, absl::Time now);

// Returns FailedPrecondition for a worker that is refused because it has served another run than `run_id`: names both.
absl::Status RefusedForItsRun(const v1::OpenSessionRequest& request, const std::string& run_id);

// Returns the error with which a chief ends because of a worker of another run, with kExitBadConfiguration. `logdir`
// may be empty.
absl::Status WrongLogdir(const v1::RunRecord::OtherRun& other, const std::string& logdir, const std::string& run_id);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_IDENTITY_H_
