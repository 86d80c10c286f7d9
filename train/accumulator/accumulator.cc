#include "lockstep/train/accumulator/accumulator.h"

#include "lockstep/common/tensor/dtype.h"
#include "lockstep/train/accumulator/gradient_elements.h"

namespace lockstep::train {

absl::Status CheckAccumulatorOptions(const AccumulatorOptions& options) {
  if (!IsGradientType(options.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the dtype of an accumulator is ", NameOf(options.dtype),
                                                   ", and must be float16, float32 or float64"));
  }
  if (!config::v1::TrainingConfig::Reduction_IsValid(options.reduction)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the reduction of an accumulator is ", options.reduction, ", and must be MEAN or SUM"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::train
