#include "lockstep/train/accumulator/conditional_accumulator.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/train/accumulator/gradient_elements.h"

namespace lockstep::train {
namespace {

class DenseSum : public GradientSum<Tensor> {
 public:
  explicit DenseSum(AccumulatorOptions options) : options_(std::move(options)) {}

  absl::Status Add(const Tensor& gradient) override {
    RETURN_IF_ERROR(Check(gradient));
    if (sum_.dtype() == v1::DT_INVALID) {
      // Copying a Tensor would share its memory, so copy the elements.
      sum_ = Tensor(options_.dtype, gradient.shape());
      std::copy(gradient.bytes().begin(), gradient.bytes().end(), sum_.data());
    } else {
      AddElements(options_.dtype, sum_.num_elements(), gradient.bytes().data(), sum_.data());
    }
    return absl::OkStatus();
  }

  Tensor Take(int64_t count) override {
    Tensor result = std::exchange(sum_, Tensor());
    if (options_.reduction == config::v1::TrainingConfig::MEAN) {
      DivideElements(options_.dtype, result.num_elements(), count, result.data());
    }
    return result;
  }

 private:
  absl::Status Check(const Tensor& gradient) const {
    if (gradient.dtype() != options_.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("the gradient has elements of ", NameOf(gradient.dtype()),
                                                     ", and the accumulator of ", NameOf(options_.dtype)));
    }
    const PartialShape expected = sum_.dtype() == v1::DT_INVALID ? options_.shape : PartialShape(sum_.shape());
    if (!expected.Matches(gradient.shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("Shape mismatch: expected ", expected.ToString(), ", got ", gradient.shape().ToString()));
    }
    return absl::OkStatus();
  }

  const AccumulatorOptions options_;
  Tensor sum_;  // of type DT_INVALID if there is no gradient
};

}  // namespace

absl::StatusOr<std::unique_ptr<ConditionalAccumulator>> ConditionalAccumulator::Create(
    const AccumulatorOptions& options) {
  RETURN_IF_ERROR(CheckAccumulatorOptions(options));
  return absl::WrapUnique(new ConditionalAccumulator(std::make_unique<DenseSum>(options)));
}

}  // namespace lockstep::train
