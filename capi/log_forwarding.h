#ifndef LOCKSTEP_CAPI_LOG_FORWARDING_H_
#define LOCKSTEP_CAPI_LOG_FORWARDING_H_

namespace lockstep {

// Makes the log call `function` with each line instead of writing to stderr. If `function` is null, warnings and errors
// go to stderr again. When ForwardLog returns, the previous function is not running and will not be called again.
// Thread-safe.
void ForwardLog(void (*function)(void* context, int severity, const char* line), void* context);

// Prepares logging for a library, without log files or signal handlers. Idempotent.
void InitializeLibrary();

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_LOG_FORWARDING_H_
