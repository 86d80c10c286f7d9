#ifndef LOCKSTEP_TESTS_BENCHMARK_LIFECYCLE_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_LIFECYCLE_BENCHMARK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/tests/benchmark/cluster_processes.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct LifecycleBenchmarkOptions {
  Programs programs;
  // Exists; checkpoints are written below it.
  std::string directory;
  int repetitions = 5;
  // Saves of a run that saves while it trains: this many, at least two, and what lies between their beginnings: more
  // than twice what one takes, so that none is written faster than usual (SavePace). The first is made when the run
  // starts.
  int paced_saves = 2;
  absl::Duration between_saves = absl::Seconds(64);
  // Units of the two hidden layers of the perceptron that is saved; with Adam's state, 8736 make a checkpoint of 1 GB.
  int64_t saved_units = 8736;
  // Elements of the variable whose exchange fills the chief's memory.
  int64_t memory_bytes = 100 << 20;
};

// Time to save a checkpoint, during training with its steps a second and awaited, and time to restore; the memory of
// chief and worker.
absl::Status MeasureSaving(const LifecycleBenchmarkOptions& options, Report* report);

// From the start of the chief's program to the first step applied.
absl::Status MeasureStart(const LifecycleBenchmarkOptions& options, Report* report);

// The chief's peak memory when four contributions arrive one after the other.
absl::Status MeasureMemory(const LifecycleBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_LIFECYCLE_BENCHMARK_H_
