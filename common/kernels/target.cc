#include "lockstep/common/kernels/target.h"

#include <algorithm>
#include <cstdlib>

#include "lockstep/common/kernels/targets.h"
// After targets.h.
#include "hwy/highway.h"

namespace lockstep {
namespace {

struct Name {
  KernelTarget target;
  int64_t bit;
  // In LOCKSTEP_TARGET, and for people.
  const char* variable;
  const char* text;
};
// The fastest first.
constexpr Name kNames[] = {
    {KernelTarget::kAvx512, HWY_AVX3, "avx512", "AVX-512"},
    {KernelTarget::kAvx2, HWY_AVX2, "avx2", "AVX2"},
    {KernelTarget::kNeon, HWY_NEON, "neon", "NEON"},
};

const Name& NameOf(KernelTarget target) {
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& name) { return name.target == target; });
}

std::string Requested() {
  const char* variable = std::getenv("LOCKSTEP_TARGET");
  return variable == nullptr ? "" : variable;
}

// The environment's choice holds from before main, so that no kernel runs for another target.
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
  static const int64_t supported = HWY_SUPPORTED_TARGETS;
  std::vector<KernelTarget> targets;
  for (const Name& name : kNames) {
    if ((supported & HWY_TARGETS & name.bit) != 0) targets.push_back(name.target);
  }
  return targets;
}

KernelTarget CurrentTarget() {
  const int64_t supported = HWY_SUPPORTED_TARGETS;
  for (const Name& name : kNames) {
    if ((supported & HWY_TARGETS & name.bit) != 0) return name.target;
  }
  return AvailableTargets().empty() ? kNames[0].target : AvailableTargets()[0];
}

const char* TargetName(KernelTarget target) { return NameOf(target).text; }

std::string TargetError() { return Start().error; }

std::string TargetNameError(const std::string& name, const std::vector<KernelTarget>& available) {
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
