#ifndef LOCKSTEP_TRAIN_SLIM_CHROME_TRACE_H_
#define LOCKSTEP_TRAIN_SLIM_CHROME_TRACE_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lockstep/common/base/process/trace_recorder.h"

namespace lockstep {

// Returns a timeline for chrome://tracing and Perfetto, with one row per thread and times in microseconds since
// `origin`.
std::string ChromeTrace(absl::Span<const TraceEvent> events, absl::Time origin);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_SLIM_CHROME_TRACE_H_
