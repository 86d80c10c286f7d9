#include "lockstep/tests/testing/process_memory.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace lockstep {
namespace {

int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int64_t kilobytes;
    if (std::sscanf(line.c_str(), "VmHWM: %" SCNd64 " kB", &kilobytes) == 1) return kilobytes << 10;
  }
  return -1;
}

}  // namespace

MemoryGrowth::MemoryGrowth() {
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  start_ = PeakBytes();
}

int64_t MemoryGrowth::peak() const { return PeakBytes() - start_; }

}  // namespace lockstep
