#include "lockstep/server/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/kernels/portable_math.h"
#include "lockstep/server/optimizer/schedule_registry.h"

namespace lockstep {
namespace {

// Returns step / decay_steps, or its integer part.
double Fraction(int64_t step, int64_t decay_steps, bool staircase) {
  if (staircase) return static_cast<double>(step / decay_steps);
  return static_cast<double>(step) / static_cast<double>(decay_steps);
}

double PiecewiseRate(const config::v1::LearningRate::Piecewise& piecewise, int64_t step) {
  const auto& boundaries = piecewise.boundaries();
  // Find the first boundary that is not below the step.
  const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), step);
  return piecewise.values(static_cast<int>(it - boundaries.begin()));
}

double PolynomialRate(const config::v1::LearningRate::Polynomial& polynomial, double initial, int64_t step) {
  const double end = polynomial.end();
  const double power = polynomial.power() == 0 ? 1 : polynomial.power();
  double decay_steps = static_cast<double>(polynomial.decay_steps());
  double at = static_cast<double>(step);
  if (polynomial.cycle()) {
    if (step > 0) decay_steps *= std::ceil(at / decay_steps);
  } else {
    at = std::min(at, decay_steps);
  }
  return (initial - end) * portable::Pow(1 - at / decay_steps, power) + end;
}

double CosineRate(double initial, double alpha, double fraction, double factor) {
  return initial * ((1 - alpha) * 0.5 * factor * (1 + portable::Cos(M_PI * fraction)) + alpha);
}

// The index of the period that contains `fraction`, and the part of that period that has passed. `fraction` is measured
// in lengths of the first period.
struct Period {
  double index;
  double passed;
};

Period PeriodOf(double fraction, double t_mul) {
  if (t_mul == 1) return {std::floor(fraction), fraction - std::floor(fraction)};
  const double log_t = portable::Log(t_mul);
  const auto start = [&](double i) { return portable::Expm1(i * log_t) / (t_mul - 1); };
  double i = std::floor(portable::Log1p(fraction * (t_mul - 1)) / log_t);
  // At the start of a period, a rounding error in the logarithm may yield the previous period.
  constexpr double kSlack = 1e-12;
  if (start(i + 1) <= fraction * (1 + kSlack)) ++i;
  return {i, std::max(0.0, (fraction - start(i)) / portable::Exp(i * log_t))};
}

double CosineRestartsRate(const config::v1::LearningRate::CosineRestarts& restarts, double initial, int64_t step) {
  const double t_mul = restarts.t_mul() == 0 ? 2 : restarts.t_mul();
  const double m_mul = restarts.m_mul() == 0 ? 1 : restarts.m_mul();
  const Period period = PeriodOf(Fraction(step, restarts.first_decay_steps(), false), t_mul);
  return CosineRate(initial, restarts.alpha(), period.passed, portable::Pow(m_mul, period.index));
}

double TableRate(const config::v1::LearningRate::Table& table, int64_t step) {
  const auto& steps = table.steps();
  // Find the first knot after the step.
  const int next = static_cast<int>(std::upper_bound(steps.begin(), steps.end(), step) - steps.begin());
  if (next == 0) return table.rates(0);
  const double before = table.rates(next - 1);
  if (next == steps.size()) return before;
  const auto passed = static_cast<double>(step - steps[next - 1]);
  const auto length = static_cast<double>(steps[next] - steps[next - 1]);
  return before + (static_cast<double>(table.rates(next)) - before) * (passed / length);
}

double ScheduledRate(const config::v1::LearningRate& config, int64_t step) {
  const double initial = config.initial();
  switch (config.schedule_case()) {
    case config::v1::LearningRate::kExponential: {
      const auto& schedule = config.exponential();
      return initial * portable::Pow(static_cast<double>(schedule.decay_rate()),
                                     Fraction(step, schedule.decay_steps(), schedule.staircase()));
    }
    case config::v1::LearningRate::kPiecewise:
      return PiecewiseRate(config.piecewise(), step);
    case config::v1::LearningRate::kPolynomial:
      return PolynomialRate(config.polynomial(), initial, step);
    case config::v1::LearningRate::kInverseTime: {
      const auto& schedule = config.inverse_time();
      return initial / (1 + schedule.decay_rate() * Fraction(step, schedule.decay_steps(), schedule.staircase()));
    }
    case config::v1::LearningRate::kCosine: {
      const auto& schedule = config.cosine();
      const int64_t at = std::min(step, schedule.decay_steps());
      return CosineRate(initial, schedule.alpha(), Fraction(at, schedule.decay_steps(), false), 1);
    }
    case config::v1::LearningRate::kCosineRestarts:
      return CosineRestartsRate(config.cosine_restarts(), initial, step);
    case config::v1::LearningRate::kTable:
      return TableRate(config.table(), step);
    case config::v1::LearningRate::kRegistered: {
      const auto schedule = FindSchedule(config.registered());
      return schedule.ok() ? (*schedule)(step, initial) : std::numeric_limits<double>::quiet_NaN();
    }
    case config::v1::LearningRate::SCHEDULE_NOT_SET:
      break;
  }
  return initial;
}

}  // namespace

float LearningRateAt(const config::v1::LearningRate& config, int64_t step) {
  double rate = ScheduledRate(config, step);
  if (step < config.warmup_steps()) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps());
  }
  return static_cast<float>(rate);
}

}  // namespace lockstep
