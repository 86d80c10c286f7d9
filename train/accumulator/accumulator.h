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
  // The element type: DT_HALF, DT_FLOAT or DT_DOUBLE.
  v1::DataType dtype = v1::DT_FLOAT;
  // The dimensions of the gradients, some of which may be unknown.
  PartialShape shape;
  // Determines whether TakeGrad returns the mean or the sum of the gradients.
  config::v1::TrainingConfig::Reduction reduction = config::v1::TrainingConfig::MEAN;
};

// Returns InvalidArgument naming the option if `options` has an unsupported dtype or reduction.
absl::Status CheckAccumulatorOptions(const AccumulatorOptions& options);

// The sum of an accumulator's gradients, which are added in call order. Does no I/O. Thread-compatible.
template <typename Gradient>
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  // Adds one gradient. Returns InvalidArgument and changes nothing if its type or shape does not fit.
  virtual absl::Status Add(const Gradient& gradient) = 0;
  // Returns the mean or the sum of all `count` gradients, and removes them. Requires at least one.
  virtual Gradient Take(int64_t count) = 0;
};

// A collection of gradients from which a program takes the mean or the sum, like TensorFlow's conditional accumulators.
// Base class of ConditionalAccumulator and SparseConditionalAccumulator. An accumulator has its own step, which starts
// at 0 and which each take increments; gradients of earlier steps are dropped. Runs do not use accumulators: the chief
// collects their workers' gradients. Thread-safe; no call may be in progress when the accumulator is destroyed.
template <typename Gradient>
class Accumulator {
 public:
  explicit Accumulator(std::unique_ptr<GradientSum<Gradient>> sum) : sum_(std::move(sum)) {}
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  // Adds a gradient that was computed at `local_step`. If the accumulator's step is larger, silently drops the gradient
  // without checking it. Errors: InvalidArgument if the gradient does not fit, in which case nothing changes; Cancelled
  // if the accumulator is closed.
  absl::Status ApplyGrad(const Gradient& gradient, int64_t local_step = 0) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("the ApplyGrad operation was cancelled: the accumulator is closed");
    if (local_step < step_) return absl::OkStatus();
    RETURN_IF_ERROR(sum_->Add(gradient));
    ++count_;
    Serve();
    return absl::OkStatus();
  }

  // Blocks until there are at least `num_required` gradients. Then removes all of them, begins the next step, and
  // returns their mean or sum. Takes are served in call order: one that waits for many gradients holds up later ones
  // that need few. Errors: InvalidArgument if num_required is not positive; Cancelled if the accumulator is closed.
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

  // Sets the accumulator's step. Gradients already added stay, regardless of their step. Logs a warning if the step
  // decreases.
  void SetGlobalStep(int64_t new_global_step) ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t old_step;
    {
      MutexLock lock(&mutex_);
      old_step = std::exchange(step_, new_global_step);
    }
    LOG_IF(WARNING, new_global_step < old_step)
        << "the step of an accumulator goes back from " << old_step << " to " << new_global_step;
  }

  // Returns the number of gradients added since the last take.
  int64_t NumAccumulated() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return count_;
  }

  // Returns the number of waiting takes.
  int64_t NumWaiting() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(takes_.size());
  }

  // Closes the accumulator permanently: waiting takes, and all later calls to ApplyGrad and TakeGrad, return Cancelled.
  // Suitable for Coordinator::OnStop, for example.
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

  // Serves the first take if there are enough gradients for it. A call to ApplyGrad serves at most one take, because no
  // gradients remain after it.
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
  // The waiting takes, in call order. Each is a local variable of its TakeGrad call.
  std::deque<PendingTake*> takes_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_ACCUMULATOR_H_
