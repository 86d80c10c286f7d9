#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_LINE_BUDGET_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_LINE_BUDGET_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// A limit on the lines that peers can make this process log. Allows a few lines in each period, and counts those that
// are left out. Pure.
class LineBudget {
 public:
  LineBudget(int64_t lines, absl::Duration period) : lines_(lines), period_(period) {}

  // Returns the number of lines left out since the last one that was allowed, or nullopt if this line must be left out
  // too.
  absl::optional<int64_t> Take(absl::Time now) {
    if (now - began_ >= period_) {
      began_ = now;
      taken_ = 0;
    }
    if (taken_ == lines_) {
      ++left_out_;
      return absl::nullopt;
    }
    ++taken_;
    const int64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  const int64_t lines_;
  const absl::Duration period_;
  absl::Time began_ = absl::InfinitePast();
  int64_t taken_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_LINE_BUDGET_H_
