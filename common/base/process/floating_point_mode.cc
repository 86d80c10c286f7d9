#include "lockstep/common/base/process/floating_point_mode.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/process/process.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace lockstep {
namespace {

struct Setting {
  uint64_t bits;
  const char* text;
};

// The control register of the vector units. The older unit of x86 (x87) is not used.
#if defined(__x86_64__)
constexpr Setting kSettings[] = {{0x8000, "subnormal results become zero (FTZ)"},
                                 {0x0040, "subnormal numbers count as zero (DAZ)"},
                                 {0x6000, "results are not rounded to the nearest (RC)"}};
uint64_t Mode() { return _mm_getcsr(); }
#elif defined(__aarch64__)
constexpr Setting kSettings[] = {{1 << 24, "subnormal results become zero (FZ)"},
                                 {1 << 0, "subnormal numbers count as zero (FIZ)"},
                                 {3 << 22, "results are not rounded to the nearest (RMode)"},
                                 {1 << 26, "16-bit floats are not those of IEEE 754 (AHP)"}};
uint64_t Mode() {
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
#else
#error "Which register holds the floating-point mode of this processor?"
#endif

}  // namespace

absl::Status CheckFloatingPointMode() {
  const uint64_t mode = Mode();
  std::vector<std::string> found;
  for (const Setting& setting : kSettings) {
    if ((mode & setting.bits) != 0) found.emplace_back(setting.text);
  }
  if (found.empty()) return absl::OkStatus();
  const std::string what =
      absl::StrCat("this thread's floating-point mode gives other bits than the default: ", absl::StrJoin(found, ", "),
                   "; a program or a library that was linked with -ffast-math may have set it");
  return WithExitCode(absl::FailedPreconditionError(what), kExitBadConfiguration);
}

}  // namespace lockstep
