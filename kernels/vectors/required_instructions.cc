#include "lockstep/kernels/vectors/required_instructions.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

// Compiled for plain x86-64. Includes no header with inline functions, because the linker might use this object's
// copies of them in other objects, or other objects' copies here.

namespace lockstep {
namespace {

struct Requirement {
  uint32_t ProcessorFeatures::*word;
  int bit;
  const char* name;
};
// The instructions of x86-64-v3. The best-known ones come first, because the error names the first missing one.
constexpr Requirement kRequirements[] = {
    {&ProcessorFeatures::leaf7_ebx, 5, "AVX2"},     {&ProcessorFeatures::leaf1_ecx, 12, "FMA"},
    {&ProcessorFeatures::leaf1_ecx, 28, "AVX"},     {&ProcessorFeatures::leaf7_ebx, 3, "BMI1"},
    {&ProcessorFeatures::leaf7_ebx, 8, "BMI2"},     {&ProcessorFeatures::leaf1_ecx, 29, "F16C"},
    {&ProcessorFeatures::extended_ecx, 5, "LZCNT"}, {&ProcessorFeatures::leaf1_ecx, 22, "MOVBE"},
    {&ProcessorFeatures::leaf1_ecx, 23, "POPCNT"},  {&ProcessorFeatures::leaf1_ecx, 20, "SSE4.2"},
    {&ProcessorFeatures::leaf1_ecx, 19, "SSE4.1"},  {&ProcessorFeatures::leaf1_ecx, 9, "SSSE3"},
    {&ProcessorFeatures::leaf1_ecx, 0, "SSE3"},     {&ProcessorFeatures::leaf1_ecx, 13, "CMPXCHG16B"},
    {&ProcessorFeatures::extended_ecx, 0, "LAHF"},
};

constexpr int kOsUsesXsave = 27;         // Of leaf1_ecx.
constexpr uint32_t kSseAndAvxSaved = 6;  // Of xcr0.

// Equals kExitBadConfiguration in common/base/process/process.h.
constexpr int kExitCode = 2;

iovec Text(const char* text) { return {const_cast<char*>(text), std::strlen(text)}; }

// 101 is the first priority that programs may use. Avoids anything that may not be initialized yet, such as stdio and
// the heap.
[[gnu::constructor(101)]] void Check() {
  const char* const missing = MissingInstructions(ThisProcessor());
  if (missing == nullptr) return;
  const iovec sentence[] = {Text(program_invocation_name), Text(": this processor has no "), Text(missing),
                            Text(", which Lockstep is compiled for (x86-64-v3)\n")};
  // If stderr is unavailable, the exit code still reports the failure.
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, sentence, sizeof(sentence) / sizeof(sentence[0]));
  _exit(kExitCode);
}

}  // namespace

ProcessorFeatures ThisProcessor() {
  ProcessorFeatures features;
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) features.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) features.leaf7_ebx = ebx;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) features.extended_ecx = ecx;
  if ((features.leaf1_ecx >> kOsUsesXsave & 1) != 0) asm("xgetbv" : "=a"(features.xcr0), "=d"(edx) : "c"(0));
  return features;
}

const char* MissingInstructions(const ProcessorFeatures& features) {
  for (const Requirement& requirement : kRequirements) {
    if ((features.*requirement.word >> requirement.bit & 1) == 0) return requirement.name;
  }
  return (features.xcr0 & kSseAndAvxSaved) == kSseAndAvxSaved ? nullptr : "AVX registers that the system saves";
}

}  // namespace lockstep
