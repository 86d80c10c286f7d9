#ifndef LOCKSTEP_CAPI_LOG_FORWARDING_H_
#define LOCKSTEP_CAPI_LOG_FORWARDING_H_

namespace lockstep {

// Calls `function`, unless it is null, with each line of the log in place of stderr, which otherwise gets warnings and
// errors. When it returns, the function before is not running and is not called again. Thread-safe.
void ForwardLog(void (*function)(void* context, int severity, const char* line), void* context);

// Prepares the log of a library: no file, no signal handler, and no line before a program has its way. Idempotent.
void InitializeLibrary();

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_LOG_FORWARDING_H_
