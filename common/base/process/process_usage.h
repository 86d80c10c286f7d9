#ifndef LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_USAGE_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_USAGE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep {

// The resources that this process uses, for display. Numbers that the system does not provide are 0.
struct ProcessUsage {
  absl::Duration processor_time;  // user and system, of all threads
  int64_t resident_bytes = 0;
  int64_t open_files = 0;
};
ProcessUsage ReadProcessUsage();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_USAGE_H_
