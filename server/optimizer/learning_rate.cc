#include "server/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

absl::Status Invalid(absl::string_view field, double value, absl::string_view must) {
  return absl::InvalidArgumentError(absl::StrCat("optimizer.learning_rate.", field, " is ", value, ", must be ", must));
}

absl::Status CheckRate(absl::string_view field, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return Invalid(field, value, "a finite number, 0 or more");
}

absl::Status CheckPositiveSteps(absl::string_view field, int64_t steps) {
  if (steps > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer.learning_rate.", field, " is ", steps, ", must be above 0"));
}

absl::Status CheckAlpha(absl::string_view field, double alpha) {
  if (alpha >= 0 && alpha <= 1) return absl::OkStatus();
  return Invalid(field, alpha, "in [0, 1]");
}

absl::Status ValidatePiecewise(const LearningRate::Piecewise& piecewise) {
  if (piecewise.values_size() != piecewise.boundaries_size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat("optimizer.learning_rate.piecewise has ", piecewise.values_size(),
                                                   " values and ", piecewise.boundaries_size(),
                                                   " boundaries, must have one value more than boundaries"));
  }
  for (int i = 1; i < piecewise.boundaries_size(); ++i) {
    if (piecewise.boundaries(i) <= piecewise.boundaries(i - 1)) {
      return absl::InvalidArgumentError(absl::StrCat("optimizer.learning_rate.piecewise.boundaries[", i, "] is ",
                                                     piecewise.boundaries(i), ", must be above the one before, ",
                                                     piecewise.boundaries(i - 1)));
    }
  }
  for (int i = 0; i < piecewise.values_size(); ++i) {
    RETURN_IF_ERROR(CheckRate(absl::StrCat("piecewise.values[", i, "]"), piecewise.values(i)));
  }
  return absl::OkStatus();
}

absl::Status ValidateCosineRestarts(const LearningRate::CosineRestarts& restarts) {
  RETURN_IF_ERROR(CheckPositiveSteps("cosine_restarts.first_decay_steps", restarts.first_decay_steps()));
  // With t_mul below 1 the periods shrink to nothing before a finite step.
  if (restarts.t_mul() != 0 && !(std::isfinite(restarts.t_mul()) && restarts.t_mul() >= 1)) {
    return Invalid("cosine_restarts.t_mul", restarts.t_mul(), "a finite number, 1 or more");
  }
  if (restarts.m_mul() != 0) RETURN_IF_ERROR(CheckRate("cosine_restarts.m_mul", restarts.m_mul()));
  return CheckAlpha("cosine_restarts.alpha", restarts.alpha());
}

// step / decay_steps, or its integer part.
double Fraction(int64_t step, int64_t decay_steps, bool staircase) {
  if (staircase) return static_cast<double>(step / decay_steps);
  return static_cast<double>(step) / static_cast<double>(decay_steps);
}

double PiecewiseRate(const LearningRate::Piecewise& piecewise, int64_t step) {
  const auto& boundaries = piecewise.boundaries();
  // The first boundary that is not below the step.
  const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), step);
  return piecewise.values(static_cast<int>(it - boundaries.begin()));
}

double PolynomialRate(const LearningRate::Polynomial& polynomial, double initial, int64_t step) {
  const double end = polynomial.end();
  const double power = polynomial.power() == 0 ? 1 : polynomial.power();
  double decay_steps = static_cast<double>(polynomial.decay_steps());
  double at = static_cast<double>(step);
  if (polynomial.cycle()) {
    if (step > 0) decay_steps *= std::ceil(at / decay_steps);
  } else {
    at = std::min(at, decay_steps);
  }
  return (initial - end) * std::pow(1 - at / decay_steps, power) + end;
}

double CosineRate(double initial, double alpha, double fraction, double factor) {
  return initial * ((1 - alpha) * 0.5 * factor * (1 + std::cos(M_PI * fraction)) + alpha);
}

// The period i in which `fraction` (of the first period's length) lies, and how much of it has passed.
struct Period {
  double index;
  double passed;
};

Period PeriodOf(double fraction, double t_mul) {
  if (t_mul == 1) return {std::floor(fraction), fraction - std::floor(fraction)};
  const double log_t = std::log(t_mul);
  const auto start = [&](double i) { return std::expm1(i * log_t) / (t_mul - 1); };
  double i = std::floor(std::log1p(fraction * (t_mul - 1)) / log_t);
  // The logarithm may be wrong in its last bit where a period begins.
  constexpr double kSlack = 1e-12;
  if (start(i + 1) <= fraction * (1 + kSlack)) ++i;
  return {i, std::max(0.0, (fraction - start(i)) / std::exp(i * log_t))};
}

double CosineRestartsRate(const LearningRate::CosineRestarts& restarts, double initial, int64_t step) {
  const double t_mul = restarts.t_mul() == 0 ? 2 : restarts.t_mul();
  const double m_mul = restarts.m_mul() == 0 ? 1 : restarts.m_mul();
  const Period period = PeriodOf(Fraction(step, restarts.first_decay_steps(), false), t_mul);
  return CosineRate(initial, restarts.alpha(), period.passed, std::pow(m_mul, period.index));
}

double ScheduledRate(const LearningRate& config, int64_t step) {
  const double initial = config.initial();
  switch (config.schedule_case()) {
    case LearningRate::kExponential: {
      const auto& schedule = config.exponential();
      return initial * std::pow(static_cast<double>(schedule.decay_rate()),
                                Fraction(step, schedule.decay_steps(), schedule.staircase()));
    }
    case LearningRate::kPiecewise:
      return PiecewiseRate(config.piecewise(), step);
    case LearningRate::kPolynomial:
      return PolynomialRate(config.polynomial(), initial, step);
    case LearningRate::kInverseTime: {
      const auto& schedule = config.inverse_time();
      return initial / (1 + schedule.decay_rate() * Fraction(step, schedule.decay_steps(), schedule.staircase()));
    }
    case LearningRate::kCosine: {
      const auto& schedule = config.cosine();
      const int64_t at = std::min(step, schedule.decay_steps());
      return CosineRate(initial, schedule.alpha(), Fraction(at, schedule.decay_steps(), false), 1);
    }
    case LearningRate::kCosineRestarts:
      return CosineRestartsRate(config.cosine_restarts(), initial, step);
    case LearningRate::SCHEDULE_NOT_SET:
      break;
  }
  return initial;
}

}  // namespace

absl::Status ValidateLearningRate(const LearningRate& config) {
  // A piecewise schedule says every rate itself.
  if (!config.has_piecewise() && !(std::isfinite(config.initial()) && config.initial() > 0)) {
    return Invalid("initial", config.initial(), "a finite number above 0, such as 0.1");
  }
  if (config.warmup_steps() < 0) return Invalid("warmup_steps", config.warmup_steps(), "0 or more");
  switch (config.schedule_case()) {
    case LearningRate::kExponential:
      RETURN_IF_ERROR(CheckPositiveSteps("exponential.decay_steps", config.exponential().decay_steps()));
      if (config.exponential().decay_rate() > 0 && std::isfinite(config.exponential().decay_rate())) break;
      return Invalid("exponential.decay_rate", config.exponential().decay_rate(), "a finite number above 0");
    case LearningRate::kPiecewise:
      return ValidatePiecewise(config.piecewise());
    case LearningRate::kPolynomial:
      RETURN_IF_ERROR(CheckPositiveSteps("polynomial.decay_steps", config.polynomial().decay_steps()));
      RETURN_IF_ERROR(CheckRate("polynomial.end", config.polynomial().end()));
      return CheckRate("polynomial.power", config.polynomial().power());
    case LearningRate::kInverseTime:
      RETURN_IF_ERROR(CheckPositiveSteps("inverse_time.decay_steps", config.inverse_time().decay_steps()));
      return CheckRate("inverse_time.decay_rate", config.inverse_time().decay_rate());
    case LearningRate::kCosine:
      RETURN_IF_ERROR(CheckPositiveSteps("cosine.decay_steps", config.cosine().decay_steps()));
      return CheckAlpha("cosine.alpha", config.cosine().alpha());
    case LearningRate::kCosineRestarts:
      return ValidateCosineRestarts(config.cosine_restarts());
    case LearningRate::SCHEDULE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

float LearningRateAt(const LearningRate& config, int64_t step) {
  double rate = ScheduledRate(config, step);
  if (step < config.warmup_steps()) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps());
  }
  return static_cast<float>(rate);
}

}  // namespace lockstep
