#include "lockstep/server/chief/checkpoint/save_queue.h"

#include <algorithm>

namespace lockstep {

bool SaveQueue::Accept(int64_t step) {
  if (step < newest_ || step <= saved_ || step <= again_) return false;
  newest_ = step;
  waiting_ = step;
  again_waits_ = false;
  return true;
}

bool SaveQueue::Offer(int64_t step, absl::Time now) {
  if (writing_ == step || !Accept(step)) return false;
  interval_ = now - last_offer_;
  last_offer_ = now;
  return true;
}

bool SaveQueue::OfferUrgent(int64_t step) {
  const bool accepted = Accept(step);
  urgent_ = urgent_ || accepted;
  return accepted;
}

void SaveQueue::OfferAgain(int64_t step) {
  saved_ = std::min(saved_, step - 1);
  newest_ = step;
  waiting_ = step;
  again_ = step;
  again_waits_ = true;
  urgent_ = true;
}

absl::optional<int64_t> SaveQueue::Take() {
  if (!waiting_ || writing_) return absl::nullopt;
  writing_ = waiting_;
  waiting_.reset();
  again_waits_ = false;
  return writing_;
}

void SaveQueue::OnWritten(bool saved) {
  if (!writing_) return;
  if (saved) saved_ = *writing_;
  if (!saved && !again_waits_ && *writing_ == again_) again_ = -1;  // the caller may retry
  if (waiting_ && !again_waits_ && *waiting_ <= saved_) waiting_.reset();
  writing_.reset();
  urgent_ = urgent_ && busy();
}

bool SaveQueue::PutBack() {
  if (!writing_) return false;
  const bool waits = !waiting_;
  if (waits) waiting_ = writing_;
  writing_.reset();
  return waits;
}

}  // namespace lockstep
