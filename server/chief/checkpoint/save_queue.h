#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Decides which snapshot is written, which one waits, and whether a caller waits for them. Identifies snapshots by
// their steps. Pure: no lock, no clock, no I/O.
//
//   state              Offer(s)           Take       OnWritten               PutBack
//   idle               s waits            -          -                       -
//   w waits            s replaces w       w written  -                       -
//   x written          s waits, but not   -          idle                    x waits, to be
//                      x once more                                           written again
//   x written, w waits s replaces w       -          w waits, unless a       w waits
//                                                    saved x covers it
//
// "-": not allowed, and changes nothing. An offer is dropped if it is older than any before it or already saved.
// OfferAgain replaces all other snapshots of its step, including later offers, and is queued even if the step is saved.
class SaveQueue {
 public:
  // Offers a snapshot of `step` to write over time. Returns false if it is dropped.
  bool Offer(int64_t step, absl::Time now);
  // Offers a snapshot that a caller waits for. It is written immediately, and restarts a paced write of the same step.
  bool OfferUrgent(int64_t step);
  // Offers an urgent snapshot that replaces every other snapshot of its step, whether saved, queued or offered later.
  void OfferAgain(int64_t step);
  // Makes all current snapshots urgent because a caller waits for them.
  void MakeUrgent() { urgent_ = busy(); }

  // Returns true if the waiting snapshot may be written now: over time if `paced`, otherwise immediately.
  bool HasWork(bool paced) const { return waiting_ && !writing_ && urgent_ != paced; }
  // Starts to write the waiting step and returns it. Returns nullopt if none waits or another one is being written.
  absl::optional<int64_t> Take();
  // Ends the current write, whether it succeeded or not.
  void OnWritten(bool saved);
  // Ends an interrupted write and queues its snapshot again. Returns false if a newer one waits in its place.
  bool PutBack();

  bool busy() const { return waiting_ || writing_; }
  bool urgent() const { return urgent_; }
  absl::optional<int64_t> waiting() const { return waiting_; }
  // The time between the last two accepted calls to Offer; infinite before the second.
  absl::Duration interval() const { return interval_; }

 private:
  bool Accept(int64_t step);

  absl::optional<int64_t> waiting_;
  absl::optional<int64_t> writing_;
  // The step of the last OfferAgain; -1 if there is none or its write failed. again_waits_ is true while it waits.
  int64_t again_ = -1;
  bool again_waits_ = false;
  // The newest step that was offered, and the newest that was saved.
  int64_t newest_ = -1;
  int64_t saved_ = -1;
  // True from when a caller waits until no snapshot is left to write.
  bool urgent_ = false;
  absl::Time last_offer_ = absl::InfinitePast();
  absl::Duration interval_ = absl::InfiniteDuration();
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_
