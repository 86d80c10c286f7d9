#ifndef LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCH_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCH_BENCHMARK_H_

#include <string>

#include "absl/status/status.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct WatchBenchmarkOptions {
  // The program `lockstep`, for its page.
  std::string page_program;
  // An existing folder for certificates, images, logdirs and logs.
  std::string directory;
  // The measuring time of a round's half, which should be several seconds, because watchers get a reply each second.
  double seconds = 5;
  int rounds = 10;
};

// Compares the same processes while a run is watched and while it is not. Measures the processor time of the smallest
// step with one watcher, and the steps per second of a run over TLS with a page whose metrics are read and 50 watchers.
absl::Status MeasureWatching(const WatchBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCH_BENCHMARK_H_
