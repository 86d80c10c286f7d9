#include "lockstep/server/ps/memory_limit.h"

#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr char kMembership[] = "/proc/self/cgroup";
// Maximum number of bytes read from each of these files.
constexpr uint64_t kMaxBytes = 64 << 10;

// Returns the contents, or an empty string if the file does not exist. Kernel files do not report their size, so they
// are read byte by byte to the end.
std::string ReadKernelFile(FileSystem* fs, const std::string& path) {
  std::string text;
  const auto file = fs->NewRandomAccessFile(path);
  if (!file.ok()) return text;
  char c = 0;
  while (text.size() < kMaxBytes && (*file)->Read(text.size(), 1, &c).ok()) text.push_back(c);
  return text;
}

// A line "hierarchy:controllers:path" of /proc/self/cgroup, converted to the location of the group's limit: `file` in
// the group's directory, `path` below `root`.
struct Membership {
  std::string root;
  std::string path;
  std::string file;
};

std::vector<Membership> FindMemberships(FileSystem* fs) {
  std::vector<Membership> memberships;
  const std::string text = ReadKernelFile(fs, kMembership);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      memberships.push_back({"/sys/fs/cgroup", fields[2], "memory.max"});
      continue;
    }
    for (const absl::string_view controller : absl::StrSplit(fields[1], ',')) {
      if (controller == "memory") memberships.push_back({"/sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"});
    }
  }
  return memberships;
}

}  // namespace

uint64_t PhysicalMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

MemoryLimit FindMemoryLimit(FileSystem* fs, uint64_t physical_bytes) {
  MemoryLimit limit = {physical_bytes, "the machine"};
  for (const Membership& membership : FindMemberships(fs)) {
    absl::string_view group = absl::StripSuffix(membership.path, "/");
    while (true) {
      const std::string file = absl::StrCat(membership.root, group, "/", membership.file);
      uint64_t bytes = 0;
      // "max" is not a number, so it is ignored.
      if (absl::SimpleAtoi(ReadKernelFile(fs, file), &bytes) && bytes < limit.bytes) limit = {bytes, file};
      const size_t slash = group.rfind('/');
      if (slash == absl::string_view::npos) break;
      group = group.substr(0, slash);
    }
  }
  return limit;
}

}  // namespace lockstep
