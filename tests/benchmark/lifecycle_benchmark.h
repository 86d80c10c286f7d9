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
  // An existing folder; checkpoints are written below it.
  std::string directory;
  int repetitions = 5;
  // Number of saves (at least two) in a run that saves while it trains, and the time between their starts. That time
  // must be more than twice the duration of a save, so that no save is written faster than usual (SavePace). The first
  // save happens when the run starts.
  int paced_saves = 2;
  absl::Duration between_saves = absl::Seconds(64);
  // Units in each of the two hidden layers of the saved perceptron. With Adam's state, 8736 units make a checkpoint of
  // 1 GB.
  int64_t saved_units = 8736;
  // Size in bytes of the variable whose exchange is used to measure the chief's peak memory.
  int64_t memory_bytes = 100 << 20;
};

// Measures the time to save a checkpoint, with a waiting caller and during training, and the steps per second during
// the save. Also measures the time to restore a checkpoint, and the memory of the chief and the worker.
absl::Status MeasureSaving(const LifecycleBenchmarkOptions& options, Report* report);

// Measures the time from the start of the chief program to the first applied step.
absl::Status MeasureStart(const LifecycleBenchmarkOptions& options, Report* report);

// Measures the chief's peak memory when four contributions arrive one after another.
absl::Status MeasureMemory(const LifecycleBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_LIFECYCLE_BENCHMARK_H_
