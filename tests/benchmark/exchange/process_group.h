#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PROCESS_GROUP_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PROCESS_GROUP_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"

namespace lockstep {
namespace benchmark {

// The server and the workers of an exchange. Each is a forked process that sleeps until it receives a number of steps.
// The process that creates the group must not have used gRPC. Not thread-safe.
class ProcessGroup {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Start(const Exchange& exchange, const ExchangeSpec& spec);
  // Kills the processes.
  ~ProcessGroup();

  struct Timing {
    // The time from the first worker's start to the last worker's end, divided by the number of steps.
    double seconds_per_step = 0;
    // The server's processor time per step.
    double server_cpu_per_step = 0;
    // A worker's processor time per step, averaged over the workers.
    double worker_cpu_per_step = 0;
    // The bytes that all workers together received per step, if ExchangeSpec::counts_bytes is set.
    double bytes_per_step = 0;
    // Peak resident sizes so far, in bytes.
    double server_peak = 0;
    double worker_peak = 0;
  };
  // Returns the server's address.
  const std::string& address() const { return address_; }
  // Makes every worker run `warm_up` steps and then `steps` measured steps.
  absl::StatusOr<Timing> Run(int warm_up, int steps);

 private:
  struct Process {
    pid_t pid = -1;
    int control = -1;  // this process's end of a socket pair
  };

  ProcessGroup() = default;

  std::vector<Process> processes_;  // the server first
  std::string address_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PROCESS_GROUP_H_
