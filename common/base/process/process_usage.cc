#include "lockstep/common/base/process/process_usage.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace lockstep {

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  rusage times = {};
  if (getrusage(RUSAGE_SELF, &times) == 0) {
    usage.processor_time = absl::DurationFromTimeval(times.ru_utime) + absl::DurationFromTimeval(times.ru_stime);
  }
  int64_t pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  usage.resident_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  if (DIR* const files = opendir("/proc/self/fd")) {
    while (readdir(files) != nullptr) ++usage.open_files;
    closedir(files);
    usage.open_files = std::max<int64_t>(usage.open_files - 3, 0);  // ".", ".." and the directory itself
  }
  return usage;
}

}  // namespace lockstep
