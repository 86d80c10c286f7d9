#ifndef LOCKSTEP_SERVER_CHIEF_READS_READ_TABLE_H_
#define LOCKSTEP_SERVER_CHIEF_READS_READ_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Tracks the reads of the run's variables (ReadVariables in proto/lockstep/v1/chief.proto). All active reads share one
// pinned step. Pure: the caller passes the time. The owner draws the ids, and keeps only the version of pinned_step().
//
//   read      Begin                          Use                 End      Expire, unused for `expiry`
//   unknown   reading                        Aborted             -        -
//   reading   the same step: unchanged       used                unknown  unknown
//             another step: cut
//   cut       unchanged                      ResourceExhausted   unknown  unknown
//
//   pinned    Begin        its last read ends or expires
//   none      its step     none
//   a step    its step     none
//
// A new read gets (Choose):
//   nothing is pinned                                          the current step
//   the current step is pinned, or an older one for less
//   than `grace`                                               the pinned step, or nothing if it has `max_reads` reads
//   an older one for longer                                    the current step; reads of the older one are cut
class ReadTable {
 public:
  struct Limits {
    size_t max_reads = 64;
    // Prevents a stream of short reads from cutting every longer one.
    absl::Duration grace = absl::Seconds(2);
    // A read that has been unused for this long is removed.
    absl::Duration expiry = absl::Seconds(10);
  };
  enum class Choice {
    kPinned,
    kCurrent,
    kFull,  // try again later
  };

  ReadTable() : ReadTable(Limits()) {}
  explicit ReadTable(const Limits& limits) : limits_(limits) {}

  // Chooses the step of a new read when the global step is `current`.
  Choice Choose(int64_t current, absl::Time now) const;
  // Begins a read of `step`, which Choose selected. `id` must be new (Knows).
  void Begin(uint64_t id, int64_t step, absl::Time now);
  // Marks the read as used.
  absl::Status Use(uint64_t id, absl::Time now);
  // Ends a completed read. Ignores an unknown id.
  void End(uint64_t id);
  // Removes expired reads. Cheap: call it before any other method.
  void Expire(absl::Time now);

  // Returns true if the id is in use. Always true for 0.
  bool Knows(uint64_t id) const { return id == 0 || reads_.count(id) > 0; }
  bool reads(uint64_t id) const;
  // Absent if there are no active reads.
  absl::optional<int64_t> pinned_step() const { return pinned_step_; }

 private:
  struct Read {
    int64_t step = 0;
    absl::Time last_used;
    bool cut = false;
  };

  size_t num_reading() const;
  void UnpinIfUnread();

  const Limits limits_;
  std::map<uint64_t, Read> reads_;
  absl::optional<int64_t> pinned_step_;
  absl::Time pinned_at_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_READS_READ_TABLE_H_
