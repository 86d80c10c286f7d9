#ifndef LOCKSTEP_TESTS_BENCHMARK_CLUSTER_PROCESSES_H_
#define LOCKSTEP_TESTS_BENCHMARK_CLUSTER_PROCESSES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/benchmark/exchange/child.h"

namespace lockstep {
namespace benchmark {

// The programs under test.
struct Programs {
  std::string chief;
  std::string worker;
};

// A chief and workers, run the way a user starts them: as separate programs, over loopback TCP. The destructor kills
// them. Not thread-safe.
class ClusterProcesses {
 public:
  struct Options {
    Programs programs;
    config::v1::RunSpec config;
    int workers = 1;
    // An existing folder for the configuration, the port file and the logs.
    std::string directory;
    // If empty, nothing is saved.
    std::string logdir;
    // If true, a second chief stands by. Needs a logdir.
    bool standby = false;
  };

  // Blocks until the chief listens and the standby, if there is one, has seen it.
  static absl::StatusOr<std::unique_ptr<ClusterProcesses>> Start(const Options& options);

  // Polls the chief's status every two milliseconds until `enough` returns true, for at most two minutes.
  absl::Status Await(const std::function<bool(const v1::RunStatus&)>& enough);

  const std::string& address() const { return address_; }
  // The address at which the standby listens once it leads.
  const std::string& standby_address() const { return standby_address_; }
  pid_t chief() const { return chief_->pid(); }
  pid_t worker(int index) const { return workers_[index]->pid(); }

 private:
  ClusterProcesses() = default;

  std::unique_ptr<Child> chief_, standby_;
  std::vector<std::unique_ptr<Child>> workers_;
  std::string address_, standby_address_;
  std::unique_ptr<ChiefClient> client_;
};

// Runs `measure`, which may use gRPC, in a forked process and returns its numbers. Kills the process after `limit`. The
// calling process must not have used gRPC.
absl::StatusOr<std::vector<double>> MeasureApart(const std::function<absl::StatusOr<std::vector<double>>()>& measure,
                                                 absl::Duration limit);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_CLUSTER_PROCESSES_H_
