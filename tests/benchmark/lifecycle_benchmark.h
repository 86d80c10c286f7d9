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
  // Parameters of a run that saves while it trains: the number of saves, at least two, and the time between their
  // starts, which is more than twice the time of a save, so that no save is written faster than usual (SavePace). The
  // first save happens when the run starts.
  int paced_saves = 2;
  absl::Duration between_saves = absl::Seconds(64);
  // Units of the two hidden layers of the saved perceptron. With Adam's state, 8736 units make a checkpoint of 1 GB.
  int64_t saved_units = 8736;
  // Elements of the variable whose exchange fills the chief's memory.
  int64_t memory_bytes = 100 << 20;
};

// Measures the time to save a checkpoint, with a waiting caller and during training (with the steps per second
// meanwhile), the time to restore it, and the memory of chief and worker.
absl::Status MeasureSaving(const LifecycleBenchmarkOptions& options, Report* report);

// Measures the time from the start of the chief's program to the first applied step.
absl::Status MeasureStart(const LifecycleBenchmarkOptions& options, Report* report);

// Measures the chief's peak memory when four contributions arrive one after another.
absl::Status MeasureMemory(const LifecycleBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_LIFECYCLE_BENCHMARK_H_
