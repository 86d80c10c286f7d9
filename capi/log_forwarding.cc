#include "lockstep/capi/log_forwarding.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {
namespace {

using LogFunction = void (*)(void* context, int severity, const char* line);

class ForwardingSink : public google::LogSink {
 public:
  ForwardingSink(LogFunction function, void* context) : function_(function), context_(context) {}

  void send(google::LogSeverity severity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t size) override {
    const std::string line(message, size);
    function_(context_, std::min<int>(severity, google::GLOG_ERROR), line.c_str());
  }

 private:
  const LogFunction function_;
  void* const context_;
};

Mutex mutex;
std::unique_ptr<ForwardingSink> sink ABSL_GUARDED_BY(mutex);

}  // namespace

void ForwardLog(LogFunction function, void* context) {
  InitializeLibrary();
  MutexLock lock(&mutex);
  // RemoveLogSink waits until a call in progress has returned.
  if (sink != nullptr) google::RemoveLogSink(sink.get());
  sink = function == nullptr ? nullptr : std::make_unique<ForwardingSink>(function, context);
  if (sink != nullptr) google::AddLogSink(sink.get());
  FLAGS_stderrthreshold = sink == nullptr ? google::GLOG_WARNING : google::GLOG_FATAL;
}

void InitializeLibrary() {
  static const bool initialized = [] {
    if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("lockstep");
    FLAGS_logtostderr = false;
    FLAGS_stderrthreshold = google::GLOG_WARNING;
    for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) google::SetLogDestination(severity, "");
    // Debian's build of Abseil runs deadlock detection on every lock that gRPC takes. Our own code does not use
    // Abseil's mutexes.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return true;
  }();
  static_cast<void>(initialized);
}

}  // namespace lockstep
