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

// A program that was started with pipes for its input and output; its errors go to a file. It is killed with this, or
// with the thread that started it. Not thread-safe.
class Child {
 public:
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& command,
                                                      const std::string& error_file);
  ~Child();

  pid_t pid() const { return pid_; }
  // With a newline of its own.
  absl::Status Write(const std::string& line);
  // The next line, without its newline. Errors: DeadlineExceeded; Unavailable when the output has ended.
  absl::StatusOr<std::string> ReadLine(absl::Duration limit);
  // Kills it, as the destructor does.
  void Kill();

 private:
  Child() = default;

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string received_;
};

// The largest resident size of a process so far, bytes; 0 when it is gone.
double PeakBytesOf(pid_t pid);
// What a process holds now of its own, bytes: private memory, and what it has made to be shared. Memory of others that
// it maps is theirs. 0 when it is gone.
double OwnBytesOf(pid_t pid);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_CHILD_H_
