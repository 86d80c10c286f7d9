#include "lockstep/cli/launcher/programs.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/common/base/process/process.h"

namespace lockstep {

absl::optional<std::string> Environment(const char* variable) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return absl::nullopt;
  return std::string(value);
}

std::string ThisProgram() {
  static const auto* const path = [] {
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    return new std::string(self, std::max<ssize_t>(0, size));
  }();
  return *path;
}

std::vector<std::string> EnvWords() {
  if (Environment("GRPC_EXPERIMENTS") != kGrpcExperiments) return {"/usr/bin/env"};
  return {"/usr/bin/env", "-u", "GRPC_EXPERIMENTS"};
}

}  // namespace lockstep
