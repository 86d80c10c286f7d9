#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_ACCUMULATOR_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_ACCUMULATOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/accumulator/partial_shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep::train {

struct AccumulatorOptions {
  // The type of the elements: DT_HALF, DT_FLOAT or DT_DOUBLE.
  v1::DataType dtype = v1::DT_FLOAT;
  // The dimensions of the gradients, some of which may be unknown.
  PartialShape shape;
  // A take returns the mean or the sum of the gradients.
  config::v1::TrainingConfig::Reduction reduction = config::v1::TrainingConfig::MEAN;
};

// Returns InvalidArgument, which names the option, if there is no such type or reduction.
absl::Status CheckAccumulatorOptions(const AccumulatorOptions& options);

// The gradients of an accumulator, summed in the order in which they were added. Pure. Thread-compatible.
template <typename Gradient>
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  // Adds one gradient. Returns InvalidArgument, and changes nothing, if its type or shape does not fit.
  virtual absl::Status Add(const Gradient& gradient) = 0;
  // Returns the mean or the sum of all gradients, whose number is `count`, and removes them. Requires at least one.
  virtual Gradient Take(int64_t count) = 0;
};

// Collects gradients until a program takes their mean or sum, as TensorFlow's conditional accumulators do; these are
// ConditionalAccumulator and SparseConditionalAccumulator. The accumulator has a step of its own, at first 0, which
// each take raises by one; gradients of earlier steps are dropped. A run uses no accumulator: the gradients of its
// workers are the chief's. Thread-safe; no call may be in progress when the accumulator is destroyed.
template <typename Gradient>
class Accumulator {
 public:
  explicit Accumulator(std::unique_ptr<GradientSum<Gradient>> sum) : sum_(std::move(sum)) {}
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  // Adds a gradient that was computed at `local_step`; drops it silently, unchecked, if the accumulator's step is
  // larger. InvalidArgument: the gradient does not fit, and nothing has changed. Cancelled: the accumulator is closed.
  absl::Status ApplyGrad(const Gradient& gradient, int64_t local_step = 0) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("the ApplyGrad operation was cancelled: the accumulator is closed");
    if (local_step < step_) return absl::OkStatus();
    RETURN_IF_ERROR(sum_->Add(gradient));
    ++count_;
    Serve();
    return absl::OkStatus();
  }

  // Blocks until `num_required` gradients are there, returns the mean or the sum of all that are, which may be more,
  // and begins the next step without any. Takes are served in the order of the calls: one that waits for many gradients
  // holds up later ones that need few. InvalidArgument: num_required is not positive. Cancelled: the accumulator is
  // closed.
  absl::StatusOr<Gradient> TakeGrad(int64_t num_required) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (num_required <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("num_required is ", num_required, ", and must be positive"));
    }
    PendingTake take;
    take.num_required = num_required;
    MutexLock lock(&mutex_);
    if (!closed_) {
      takes_.push_back(&take);
      Serve();
    }
    while (!take.gradient && !closed_) served_.Wait(&mutex_);
    if (!take.gradient) {
      return absl::CancelledError("the TakeGrad operation was cancelled: the accumulator is closed");
    }
    return *std::move(take.gradient);
  }

  // Sets the accumulator's step. Gradients that were already added stay, regardless of their step. Logs a warning if
  // the step is smaller than before.
  void SetGlobalStep(int64_t new_global_step) ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t old_step;
    {
      MutexLock lock(&mutex_);
      old_step = std::exchange(step_, new_global_step);
    }
    LOG_IF(WARNING, new_global_step < old_step)
        << "the step of an accumulator goes back from " << old_step << " to " << new_global_step;
  }

  // Returns the number of gradients that were added since the last take.
  int64_t NumAccumulated() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return count_;
  }

  // Returns the number of takes that wait.
  int64_t NumWaiting() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(takes_.size());
  }

  // Permanently ends all work: takes that wait, and all later calls of ApplyGrad and TakeGrad, return Cancelled. For
  // Coordinator::OnStop, for example.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    closed_ = true;
    takes_.clear();
    served_.SignalAll();
  }

 private:
  struct PendingTake {
    int64_t num_required = 0;
    absl::optional<Gradient> gradient;
  };

  // Gives the gradients to the first take, if they are enough for it. A call of ApplyGrad serves one take at most,
  // because no gradient is left after it.
  void Serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (takes_.empty() || count_ < takes_.front()->num_required) return;
    takes_.front()->gradient = sum_->Take(count_);
    takes_.pop_front();
    count_ = 0;
    ++step_;
    served_.SignalAll();
  }

  mutable Mutex mutex_;
  CondVar served_;  // a take has its gradient, or the accumulator is closed
  std::unique_ptr<GradientSum<Gradient>> sum_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  // The takes that wait, in the order of their calls. Each lives in its call of TakeGrad.
  std::deque<PendingTake*> takes_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_ACCUMULATOR_H_
