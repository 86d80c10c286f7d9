#ifndef LOCKSTEP_SERVER_CHIEF_OWNERSHIP_PREDECESSOR_WATCH_H_
#define LOCKSTEP_SERVER_CHIEF_OWNERSHIP_PREDECESSOR_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/ownership/fenced_files.h"

namespace lockstep {

// A standby's view of its chief. Does not compare clocks: a chief is silent if its beat (FencedFiles::Beat) has not
// changed for some time by the standby's clock. The time that the standby's reads take does not count, because a
// hanging disk also delays the beat. A chief that does not beat is never silent. Not thread-safe.
class PredecessorWatch {
 public:
  enum class State { kGone, kRuns, kSilent };

  // A chief is silent after `limit` without a beat. `fs` and `clock` must outlive this object.
  PredecessorWatch(FileSystem* fs, Clock* clock, std::string logdir, absl::Duration limit)
      : fs_(fs), clock_(clock), logdir_(std::move(logdir)), limit_(limit) {}

  // Reads the files. `is_held` returns true if a chief holds the logdir's lock.
  State Look(absl::FunctionRef<bool()> is_held);
  // Returns the generation of the silent chief after kSilent.
  int64_t generation() const { return last_ ? last_->generation : 0; }

 private:
  FileSystem* const fs_;
  Clock* const clock_;
  const std::string logdir_;
  const absl::Duration limit_;
  absl::optional<FencedFiles::LastBeat> last_;
  // The time at which last_ was first seen, plus the time that later reads took.
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_OWNERSHIP_PREDECESSOR_WATCH_H_
