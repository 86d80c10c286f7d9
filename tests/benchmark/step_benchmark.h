#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct StepBenchmarkOptions {
  // Bytes of the model; 2678824 stands for the MLP 784-512-512-10 with its six variables.
  std::vector<int64_t> sizes;
  std::vector<int> workers = {1, 2};
  // How tensors travel: over sockets on loopback, or, Lockstep's, in memory that chief and workers share; the others
  // use TCP then.
  enum class Wire { kTcp, kUnix, kSharedMemory };
  std::vector<Wire> wires = {Wire::kTcp, Wire::kUnix, Wire::kSharedMemory};
  // For each size, number of workers and wire.
  double seconds = 8;
  bool naive = true;
  // Of the chief.
  int step_threads = 2;
  // Nothing but Lockstep, for a profiler.
  bool alone = false;
  // For unix sockets.
  std::string directory;
};

// Push and pull of a model whose gradients cost nothing, against raw sockets, against a plain protobuf stub and, for
// models below a megabyte, against a bare gRPC round trip.
absl::Status MeasureSteps(const StepBenchmarkOptions& options, Report* report);

// Processor time of the chief for each step and worker, at `sizes`, for each number of `workers`.
absl::Status MeasureChiefCpu(const StepBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_
