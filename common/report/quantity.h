#ifndef LOCKSTEP_COMMON_REPORT_QUANTITY_H_
#define LOCKSTEP_COMMON_REPORT_QUANTITY_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace lockstep {

// Functions that format numbers for users with about three digits. All are pure.

// Formats a number: "0", "0.42", "7.5", "310", "39.7k", "1.25M", "-" when not finite.
std::string QuantityText(double value);

// Formats a number of bytes in units of 1000: "0 B", "512 B", "2.68 MB", "1.1 GB".
std::string BytesText(int64_t bytes);

// Formats a measured time: "0.4 ms", "12 ms", "1.3 s", "45 s"; "-" when not positive or not finite.
std::string MeasuredTimeText(absl::Duration duration);

// Formats an estimated time: "9s", "2m 05s", "3h 12m", "2d 3h".
std::string RemainingTimeText(absl::Duration duration);

// "1 worker", "2 workers".
std::string CountText(int64_t count, const std::string& noun);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_QUANTITY_H_
