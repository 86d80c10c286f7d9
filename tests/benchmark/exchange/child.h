#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_CHILD_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {
namespace benchmark {

// A child process whose standard input and output are pipes, and whose standard error goes to a file. It is killed by
// the destructor, or when the thread that started it ends. Not thread-safe.
class Child {
 public:
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& command,
                                                      const std::string& error_file);
  ~Child();

  pid_t pid() const { return pid_; }
  // Writes `line` and a newline.
  absl::Status Write(const std::string& line);
  // Returns the next line, without its newline. Returns DeadlineExceeded after `limit`, or Unavailable if the output
  // has ended.
  absl::StatusOr<std::string> ReadLine(absl::Duration limit);
  // Kills the program. The destructor does the same.
  void Kill();

 private:
  Child() = default;

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string received_;
};

// Returns the peak resident size of a process in bytes, or 0 if it has ended.
double PeakBytesOf(pid_t pid);
// Returns the memory that a process owns now, in bytes: its private memory, and the shared memory that it has created.
// Excludes memory that it maps from other processes. Returns 0 if the process has ended.
double OwnBytesOf(pid_t pid);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_CHILD_H_
