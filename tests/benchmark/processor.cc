#include "lockstep/tests/benchmark/processor.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/kernels/vectors/fma_peak.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int64_t kPeakRounds = 100000;
constexpr int kPeaks = 20;

std::string ProcessorName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(cpuinfo, line);) {
    if (absl::StartsWith(line, "model name")) model = line.substr(line.find(':') + 2);
  }
  return model;
}

}  // namespace

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double MeasurePeak() {
  const double begin = ProcessorSeconds();
  const auto multiply_adds = static_cast<double>(RunMultiplyAdds(kPeakRounds));
  return multiply_adds / (ProcessorSeconds() - begin);
}

std::string MachineText() {
  double peak = 0;
  for (int i = 0; i < kPeaks; ++i) peak = std::max(peak, MeasurePeak());
  return absl::StrCat(std::thread::hardware_concurrency(), " cores, ", ProcessorName(), ", ",
                      TargetName(CurrentTarget()), absl::StrFormat(" of %.0f GFLOP/s each", 2e-9 * peak));
}

}  // namespace benchmark
}  // namespace lockstep
