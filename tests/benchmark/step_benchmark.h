#ifndef LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/tests/benchmark/exchange/peer_exchange.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct StepBenchmarkOptions {
  // The sizes of the model in bytes. 2678824 selects the MLP 784-512-512-10 with its six variables.
  std::vector<int64_t> sizes;
  std::vector<int> workers = {1, 2};
  // The transport of tensors: sockets on loopback, or memory that Lockstep's chief and workers share while other
  // systems use TCP.
  enum class Wire { kTcp, kUnix, kSharedMemory };
  std::vector<Wire> wires = {Wire::kTcp, Wire::kUnix, Wire::kSharedMemory};
  // The measuring time for each combination of size, number of workers and wire.
  double seconds = 8;
  bool naive = true;
  // The number of the chief's step threads.
  int step_threads = 2;
  // If true, runs only Lockstep, for a profiler.
  bool alone = false;
  // An existing folder for unix sockets.
  std::string directory;
};

// Compares Lockstep's push and pull, for a model whose gradients take no time to compute, with raw sockets, a plain
// protobuf stub and, for models below a megabyte, a bare gRPC round trip.
absl::Status MeasureSteps(const StepBenchmarkOptions& options, Report* report);

// Compares the exchange of one worker of the Python package, in a loop over its slots and in Worker.run, with that of a
// C++ worker. Uses the sizes in `sizes`, in shared memory and over TCP.
absl::Status MeasurePython(const StepBenchmarkOptions& options, const Peers& peers, Report* report);

// Compares the exchange over TCP with and without TLS, in elapsed time and in processor time.
absl::Status MeasureTls(const StepBenchmarkOptions& options, Report* report);

// Compares the exchange of a model with and without 100 MB of constant variables, such as the frozen body of a network.
// Measures time, the chief's processor time and, without shared memory, the bytes that the worker receives.
absl::Status MeasureFrozen(const StepBenchmarkOptions& options, Report* report);

// Measures the chief's processor time per step and worker, for each of the model sizes in `sizes` and each number of
// workers in `workers`.
absl::Status MeasureChiefCpu(const StepBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_STEP_BENCHMARK_H_
