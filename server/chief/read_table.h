#ifndef LOCKSTEP_SERVER_CHIEF_READ_TABLE_H_
#define LOCKSTEP_SERVER_CHIEF_READ_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Who reads the run's variables (ReadVariables in proto/lockstep/v1/chief.proto), and of which step: all who read, of
// one. Pure: the time comes in, and the owner keeps the version of pinned_step() and no other, and draws ids.
//
//   read      Begin                          Use                 End      Expire, unused for `expiry`
//   unknown   reading                        Aborted             -        -
//   reading   the same step: unchanged       used                unknown  unknown
//             another step: cut
//   cut       unchanged                      ResourceExhausted   unknown  unknown
//
//   pinned    Begin        the last who reads it ends or expires
//   none      its step     none
//   a step    its step     none
//
// What a read that begins gets (Choose):
//   nothing is pinned                                          the current step
//   the current step is pinned, or an older one for less
//   than `grace`                                               the pinned step, or nothing when `max_reads` read it
//   an older one for longer                                    the current step; those who read the older one are cut
class ReadTable {
 public:
  struct Limits {
    size_t max_reads = 64;
    // Without it a stream of short reads would cut every longer one.
    absl::Duration grace = absl::Seconds(2);
    // A read that was not continued for so long is forgotten.
    absl::Duration expiry = absl::Seconds(10);
  };
  enum class Choice {
    kPinned,
    kCurrent,
    kFull,  // try again later
  };

  ReadTable() : ReadTable(Limits()) {}
  explicit ReadTable(const Limits& limits) : limits_(limits) {}

  // The step of a read that begins at the global step `current`.
  Choice Choose(int64_t current, absl::Time now) const;
  // A read of `step`, as Choose chose, begins. `id` must be new (Knows).
  void Begin(uint64_t id, int64_t step, absl::Time now);
  // The read continues.
  absl::Status Use(uint64_t id, absl::Time now);
  // It has all that it wants. Ignored for an unknown one.
  void End(uint64_t id);
  // Forgets those that were not continued. Cheap: to be called before anything else.
  void Expire(absl::Time now);

  // Whether the id is taken; 0 always is.
  bool Knows(uint64_t id) const { return id == 0 || reads_.count(id) > 0; }
  bool reads(uint64_t id) const;
  // Absent when nobody reads.
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

#endif  // LOCKSTEP_SERVER_CHIEF_READ_TABLE_H_
