#include "lockstep/worker/nn/graph/regularization.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/validation/variable_expression.h"
#include "lockstep/kernels/elementwise.h"

namespace lockstep {
namespace {

// Number of elements whose penalties are summed together.
constexpr int64_t kBlock = 8192;

double Penalty(const float* w, int64_t size, float l1, float l2) {
  const PenaltySums sums = SumPenalties(size, w);
  return static_cast<double>(l1) * sums.absolute + 0.5 * static_cast<double>(l2) * sums.squares;
}

}  // namespace

absl::StatusOr<Regularization> Regularization::Create(const config::v1::ModelConfig& config,
                                                      const v1::ModelSpec& spec) {
  Regularization result;
  result.factors_.resize(spec.variables_size());
  for (int r = 0; r < config.regularizer_size(); ++r) {
    const config::v1::Regularizer& regularizer = config.regularizer(r);
    const std::string field = absl::StrCat("model.regularizer[", r, "]");
    for (const float factor : {regularizer.l1(), regularizer.l2()}) {
      if (factor >= 0 && std::isfinite(factor)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": '", regularizer.variables(), "': factor ", factor, " is not in [0, infinity)"));
    }
    const auto matched = FindTrainableVariables(regularizer.variables(), spec);
    if (!matched.ok()) return InField(field, matched.status());
    for (const int i : *matched) {
      Factors& factors = result.factors_[i];
      factors.l1 += regularizer.l1();
      factors.l2 += regularizer.l2();
      factors.elements = 1;
      for (const int64_t dim : spec.variables(i).shape()) factors.elements *= dim;
    }
  }
  return result;
}

double Regularization::Loss(ComputeContext* compute, VariableValues values) {
  double loss = 0;
  for (size_t variable = 0; variable < factors_.size(); ++variable) {
    const Factors& factors = factors_[variable];
    if (factors.elements == 0) continue;
    const int64_t blocks = (factors.elements + kBlock - 1) / kBlock;
    double* sums = block_sums_.Get(blocks);
    compute->ParallelRanges(factors.elements, kBlock, [&](int64_t begin, int64_t end) {
      sums[begin / kBlock] = Penalty(values[variable] + begin, end - begin, factors.l1, factors.l2);
    });
    for (int64_t block = 0; block < blocks; ++block) loss += sums[block];
  }
  return loss;
}

void Regularization::AddGradient(ComputeContext* compute, int variable, const float* value, float* gradient) const {
  const Factors& factors = factors_[variable];
  if (factors.elements == 0) return;
  compute->ParallelRanges(factors.elements, kBlock, [&](int64_t begin, int64_t end) {
    AddPenaltyGradient(factors.l1, factors.l2, end - begin, value + begin, gradient + begin);
  });
}

}  // namespace lockstep
