#ifndef LOCKSTEP_COMMON_BASE_PROCESS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace lockstep {

// Exit codes of every program.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,            // NaN loss or another permanent failure
  kExitBadConfiguration = 2,  // arguments or configuration
  kExitRetryable = 138,       // starting it again may help
  kExitTerminated = 143,      // SIGTERM or SIGINT
};

// The exit code for the status with which a role ended.
int ExitCodeOf(const absl::Status& status);

// First call of every main: logging to stderr, the C library told to keep freed memory (it halves the time of a
// step) and to have one heap for all threads, as many open files as allowed, no SIGPIPE. Ends the process with a line
// when the processor lacks the instructions that everything is compiled for (AVX2 and FMA).
void InitializeProcess(const char* program);

// "worker-1234@host": the role, process id and host name.
std::string ProcessName(const std::string& role);

// Calls `on_first` in a thread of its own at the first SIGTERM or SIGINT; a second one ends the process at once with
// code 143. Make it before any other thread, so that all block the signals. Destroying it ends the watch.
class TerminationWatch {
 public:
  explicit TerminationWatch(std::function<void()> on_first);
  ~TerminationWatch();

 private:
  std::function<void()> on_first_;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_H_
