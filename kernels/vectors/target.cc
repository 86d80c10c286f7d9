#include "lockstep/kernels/vectors/target.h"

#include <algorithm>
#include <cstdlib>

#include "lockstep/kernels/vectors/targets.h"
// Must come after targets.h.
#include "hwy/highway.h"

namespace lockstep {
namespace {

struct Name {
  KernelTarget target;
  int64_t bit;
  // The name in LOCKSTEP_TARGET, and the name in messages.
  const char* variable;
  const char* text;
};
// The fastest first.
constexpr Name kNames[] = {
    {KernelTarget::kAvx512, HWY_AVX3, "avx512", "AVX-512"},
    {KernelTarget::kAvx2, HWY_AVX2, "avx2", "AVX2"},
    {KernelTarget::kNeon, HWY_NEON, "neon", "NEON"},
};
// The target that this object is compiled for. The processor always supports it (required_instructions.h), although
// Highway may not detect it, because Highway's AVX2 includes AES.
constexpr int64_t kStatic = HWY_STATIC_TARGET;
static_assert((kStatic & (HWY_AVX3 | HWY_AVX2 | HWY_NEON)) != 0, "The flags are not those of .bazelrc.");

// Returns the kernels' targets that Highway detects or that UseTarget() has set.
int64_t Supported() { return (HWY_SUPPORTED_TARGETS & HWY_TARGETS) | kStatic; }

const Name& NameOf(KernelTarget target) {
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& name) { return name.target == target; });
}

std::string Requested() {
  const char* variable = std::getenv("LOCKSTEP_TARGET");
  return variable == nullptr ? "" : variable;
}

// Its constructor applies the environment's choice before main, so that no kernel runs on a different target.
struct AtStart {
  AtStart() : error(TargetNameError(Requested(), AvailableTargets())) {
    const std::string requested = Requested();
    for (const Name& name : kNames) {
      if (error.empty() && requested == name.variable) UseTarget(name.target);
    }
  }
  std::string error;
};
const AtStart& Start() {
  static const AtStart* const start = new AtStart;
  return *start;
}
[[maybe_unused]] const AtStart& started = Start();

}  // namespace

std::vector<KernelTarget> AvailableTargets() {
  static const int64_t supported = Supported();
  std::vector<KernelTarget> targets;
  for (const Name& name : kNames) {
    if ((supported & name.bit) != 0) targets.push_back(name.target);
  }
  return targets;
}

KernelTarget CurrentTarget() {
  const int64_t supported = Supported();
  return std::find_if(std::begin(kNames), std::end(kNames),
                      [&](const Name& name) { return (supported & name.bit) != 0; })
      ->target;
}

const char* TargetName(KernelTarget target) { return NameOf(target).text; }

std::string TargetError() { return Start().error; }

std::string TargetNameError(const std::string& name, const std::vector<KernelTarget>& available) {
  if (available.empty()) return "this processor has none of AVX2, AVX-512 and NEON, one of which the kernels need";
  if (name.empty()) return "";
  for (const Name& known : kNames) {
    if (name != known.variable) continue;
    if (std::find(available.begin(), available.end(), known.target) != available.end()) return "";
    return std::string("LOCKSTEP_TARGET is ") + name + ", but this processor has no " + known.text;
  }
  return "LOCKSTEP_TARGET is \"" + name + "\", but must be avx2, avx512, neon or empty";
}

void UseTarget([[maybe_unused]] KernelTarget target) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) != 0  // More than one.
  hwy::SetSupportedTargetsForTest(NameOf(target).bit);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#endif
}

}  // namespace lockstep
