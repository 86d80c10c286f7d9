#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_LIMIT_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"

namespace lockstep {

// The time limit of a patient attempt to reach a chief. It doubles after each attempt that runs out of time, so that
// even a distant chief is found. Pure.
class ConnectLimit {
 public:
  ConnectLimit(absl::Duration first, absl::Duration most) : first_(first), most_(most), now_(first) {}

  // Time limits of a whole attempt, and of connecting to one of the host's addresses.
  absl::Duration attempt() const { return now_; }
  absl::Duration connect() const { return now_ / 2; }
  // Returns true if the first limit was too short.
  bool has_grown() const { return now_ > first_; }

  // Records that the attempt failed after `took`. A quick refusal changes nothing.
  void OnFailure(absl::Duration took) {
    if (took >= connect()) now_ = std::min(2 * now_, most_);
  }
  // Records that the attempt was answered after `took`. The next attempt gets twice that time.
  void OnAnswer(absl::Duration took) { now_ = std::min(std::max(2 * took, first_), most_); }

 private:
  const absl::Duration first_, most_;
  absl::Duration now_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_LIMIT_H_
