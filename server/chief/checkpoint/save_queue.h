#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Which snapshot is written, which one waits, and whether anybody waits for them. Snapshots are known by their steps.
// Pure: no lock, no clock, no I/O.
//
//   state              Offer(s)           Take       OnWritten               PutBack
//   idle               s waits            -          -                       -
//   w waits            s replaces w       w written  -                       -
//   x written          s waits, but not   -          idle                    x waits, to be
//                      x once more                                           written again
//   x written, w waits s replaces w       -          w waits, unless a       w waits
//                                                    saved x covers it
//
// "-": not allowed, and changes nothing. Offers that are older than any before, or saved already, are dropped. One that
// is offered again takes the place of all others of its step, those that come later, too, and waits whatever is saved.
class SaveQueue {
 public:
  // A snapshot of `step` comes, to be written over time. False when it is dropped.
  bool Offer(int64_t step, absl::Time now);
  // One that a caller waits for: it is written at once, from the beginning if it is being written over time.
  bool OfferUrgent(int64_t step);
  // An urgent one. What was saved, is here or comes later of this step is not its state any more: this one is.
  void OfferAgain(int64_t step);
  // A caller waits for everything that is here.
  void MakeUrgent() { urgent_ = busy(); }

  // The snapshot that waits may be written now, over time if `paced`, else at once.
  bool HasWork(bool paced) const { return waiting_ && !writing_ && urgent_ != paced; }
  // The step that waits; it is being written from now on. nullopt when none waits, or another is being written.
  absl::optional<int64_t> Take();
  // What was being written is saved, or could not be.
  void OnWritten(bool saved);
  // What was being written was interrupted, to be written again; false when a newer one waits in its place.
  bool PutBack();

  bool busy() const { return waiting_ || writing_; }
  bool urgent() const { return urgent_; }
  absl::optional<int64_t> waiting() const { return waiting_; }
  // Between the last two offers that were to be written over time; infinite before the second.
  absl::Duration interval() const { return interval_; }

 private:
  bool Accept(int64_t step);

  absl::optional<int64_t> waiting_;
  absl::optional<int64_t> writing_;
  // What OfferAgain has brought last, until it could not be written; -1 for none. Whether it still waits.
  int64_t again_ = -1;
  bool again_waits_ = false;
  // The newest step of all snapshots that came, and of those that were saved.
  int64_t newest_ = -1;
  int64_t saved_ = -1;
  // A caller waits, until nothing is left to write.
  bool urgent_ = false;
  absl::Time last_offer_ = absl::InfinitePast();
  absl::Duration interval_ = absl::InfiniteDuration();
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_QUEUE_H_
