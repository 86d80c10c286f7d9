#ifndef LOCKSTEP_SERVER_RPC_CALL_CALL_COUNTS_H_
#define LOCKSTEP_SERVER_RPC_CALL_CALL_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// Counts of a server's ended calls, by method and status code. Thread-safe.
class CallCounts {
 public:
  // Each method is kept as long as this object, so a peer must not be able to choose its name.
  void Add(const std::string& method, absl::StatusCode code) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++counts_[{method, code}];
  }

  // Fills in RunCounters.calls.
  void Fill(v1::RunCounters* counters) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    for (const auto& [call, count] : counts_) {
      v1::RunCounters::Calls& filled = *counters->add_calls();
      filled.set_method(call.first);
      filled.set_code(absl::StatusCodeToString(call.second));
      filled.set_count(count);
    }
  }

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, absl::StatusCode>, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_CALL_COUNTS_H_
