#include "lockstep/common/contract/canary_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

// Number of values to draw at a time; a multiple of 4.
constexpr size_t kDrawn = 4096;

}  // namespace

void FillCanaryValues(uint64_t seed, const ParameterLayout::Variable& variable, int64_t offset, absl::Span<float> out) {
  const v1::VariableSpec& spec = variable.spec;
  const Philox philox(seed, StableHash(spec.name(), StableHash("canary")));
  const bool flat = spec.shape_size() < 2;
  const double inputs = flat ? 1 : static_cast<double>(variable.elements / spec.shape(spec.shape_size() - 1));
  const float limit = static_cast<float>(std::sqrt(3 / inputs));
  std::vector<uint32_t> bits(std::min(out.size(), kDrawn));
  for (size_t at = 0; at < out.size(); at += kDrawn) {
    const size_t size = std::min(kDrawn, out.size() - at);
    philox.FillBits((static_cast<uint64_t>(offset) + at) / 4, absl::MakeSpan(bits).first(size));
    for (size_t i = 0; i < size; ++i) {
      const float uniform = Philox::ToUniform(bits[i]);
      out[at + i] = flat ? 0.5f + uniform : (2 * uniform - 1) * limit;
    }
  }
}

}  // namespace lockstep
