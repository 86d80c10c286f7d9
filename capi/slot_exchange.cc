#include "lockstep/capi/slot_exchange.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

class SlotExchange::Call {
 public:
  explicit Call(SlotExchange* exchange) : exchange_(*exchange) {
    MutexLock lock(&exchange_.mutex_);
    if (exchange_.state_ != State::kOpen || exchange_.abandoned_) {
      status_ = absl::FailedPreconditionError("no slot is open; take one first");
    } else if (exchange_.in_call_) {
      status_ = absl::FailedPreconditionError("two threads call functions of one slot at the same time");
    } else {
      exchange_.in_call_ = true;
    }
  }
  ~Call() {
    if (!status_.ok()) return;
    MutexLock lock(&exchange_.mutex_);
    exchange_.in_call_ = false;
    // Waking the worker's thread after every call would cost more than the call.
    if (exchange_.state_ == State::kReturned || exchange_.stopped_) exchange_.changed_.SignalAll();
  }
  const absl::Status& status() const { return status_; }

 private:
  SlotExchange& exchange_;
  absl::Status status_;
};

absl::Status SlotExchange::Compute(const ForeignSlot& slot, GradientSink* sink) {
  MutexLock lock(&mutex_);
  if (stopped_) return absl::CancelledError("a stop was requested");
  slot_ = &slot;
  sink_ = sink;
  loss_given_ = weight_given_ = gradients_begun_ = false;
  asked_.assign(layout_.variables().size(), false);
  ready_.assign(layout_.variables().size(), false);
  updated_.assign(layout_.update_ops().size(), false);
  state_ = State::kOffered;
  changed_.SignalAll();
  const auto given_up = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ && (state_ == State::kOffered || abandoned_);
  };
  while (in_call_ || (state_ != State::kReturned && !given_up())) {
    if (state_ == State::kOffered && function_ != nullptr) {
      CallFunction();
    } else {
      changed_.Wait(&mutex_);
    }
  }
  absl::Status result = state_ == State::kReturned ? std::move(result_) : absl::CancelledError("a stop was requested");
  state_ = State::kIdle;
  slot_ = nullptr;
  sink_ = nullptr;
  return result;
}

void SlotExchange::Close(absl::Status end) {
  MutexLock lock(&mutex_);
  end_ = end.ok() ? absl::OutOfRangeError("the run is over") : std::move(end);
  changed_.SignalAll();
  run_changed_.SignalAll();
}

void SlotExchange::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

void SlotExchange::Cancel() {
  MutexLock lock(&mutex_);
  stopped_ = abandoned_ = true;
  changed_.SignalAll();
}

absl::StatusOr<ForeignSlot> SlotExchange::Take(absl::Duration timeout) {
  RETURN_IF_ERROR(CheckFloatingPointMode());
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(RequireNoOpenSlot());
  while (state_ != State::kOffered && !end_.has_value()) {
    const absl::Duration left = deadline - Clock::Real()->Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("there is no slot to compute yet");
    changed_.WaitWithTimeout(&mutex_, left);
  }
  if (end_.has_value()) return *end_;
  if (stopped_) return absl::CancelledError("a stop was requested");
  state_ = State::kOpen;
  return *slot_;
}

absl::Status SlotExchange::Run(absl::Duration timeout, SlotFunction function) {
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(RequireNoOpenSlot());
  if (function_ != nullptr || in_function_) {
    return absl::FailedPreconditionError("another thread runs the worker's slots");
  }
  function_ = &function;
  function_end_.reset();
  changed_.SignalAll();
  absl::Duration left = timeout;
  while (!function_end_ && !end_ && left > absl::ZeroDuration()) {
    run_changed_.WaitWithTimeout(&mutex_, left);
    left = deadline - Clock::Real()->Now();
  }
  function_ = nullptr;
  while (in_function_) run_changed_.Wait(&mutex_);
  if (function_end_) return *function_end_;
  if (end_) return *end_;
  return absl::DeadlineExceededError("the run is not over yet");
}

void SlotExchange::CallFunction() {
  absl::Status end = CheckFloatingPointMode();
  if (end.ok()) {
    const SlotFunction& function = *function_;
    state_ = State::kOpen;
    in_function_ = true;
    mutex_.Unlock();
    const bool wants_more = function(*slot_);
    mutex_.Lock();
    in_function_ = false;
    if (!wants_more) {
      end = absl::CancelledError("the program's function wants no more slots");
    } else {
      end = RequireNoOpenSlot();
    }
  }
  if (!end.ok()) {
    function_ = nullptr;
    function_end_ = std::move(end);
  }
  if (function_ == nullptr) run_changed_.SignalAll();
}

absl::Status SlotExchange::Loss(float loss) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  RETURN_IF_ERROR(Require(!loss_given_, "has its loss already"));
  loss_given_ = true;
  if (sink_->OnLoss(loss)) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat(SlotName(), " is not wanted any more"));
}

absl::Status SlotExchange::Weight(float weight) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  if (!std::isfinite(weight) || weight < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the weight of ", SlotName(), " is ", weight, ", must be a finite number, 0 or more"));
  }
  RETURN_IF_ERROR(Require(loss_given_, "has no loss yet, which comes first"));
  RETURN_IF_ERROR(Require(!gradients_begun_, "has a gradient already; the weight comes before gradients"));
  RETURN_IF_ERROR(Require(!weight_given_, "has its weight already"));
  weight_given_ = true;
  sink_->OnWeight(weight);
  return absl::OkStatus();
}

absl::Status SlotExchange::Metric(const std::string& name, float value) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  RETURN_IF_ERROR(Require(loss_given_, "has no loss yet, which comes first"));
  RETURN_IF_ERROR(Require(!gradients_begun_, "has a gradient already; metrics come before gradients"));
  return sink_->OnMetric(name, value);
}

absl::Status SlotExchange::Update(size_t op, const Elements& value) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  if (op >= updated_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no update op ", op, "; the model has ", updated_.size()));
  }
  const auto& variable = layout_.variables()[layout_.update_ops()[op].variable];
  if (value.dtype() != variable.spec.dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("the update of \"", variable.spec.name(), "\" is ",
                                                   NameOf(value.dtype()), ", the variable is ",
                                                   NameOf(variable.spec.dtype())));
  }
  if (value.size() != variable.elements || value.bytes().data() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the update of \"", variable.spec.name(), "\" has ", value.size(),
                                                   " elements, the variable has ", variable.elements));
  }
  RETURN_IF_ERROR(Require(loss_given_, "has no loss yet, which comes first"));
  RETURN_IF_ERROR(Require(!gradients_begun_, "has a gradient already; updates come before gradients"));
  RETURN_IF_ERROR(Require(!updated_[op], absl::StrCat("has the update of \"", variable.spec.name(), "\" already")));
  updated_[op] = true;
  sink_->OnUpdate(static_cast<int>(op), value);
  return absl::OkStatus();
}

absl::StatusOr<float*> SlotExchange::Gradient(size_t variable) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  ASSIGN_OR_RETURN(const int pending, PendingGradient(variable));
  asked_[variable] = true;
  return sink_->GradientBuffer(pending);
}

absl::Status SlotExchange::Ready(size_t variable) {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  ASSIGN_OR_RETURN(const int pending, PendingGradient(variable));
  RETURN_IF_ERROR(Require(loss_given_, "has no loss yet, which comes before the gradients"));
  for (size_t op = 0; op < updated_.size(); ++op) {
    if (updated_[op]) continue;
    const auto& missing = layout_.variables()[layout_.update_ops()[op].variable].spec.name();
    return Require(false, absl::StrCat("has no update of \"", missing, "\" yet; updates come before gradients"));
  }
  RETURN_IF_ERROR(Require(asked_[variable], "has a gradient ready whose memory was not asked for"));
  ready_[variable] = gradients_begun_ = true;
  sink_->OnGradient(pending);
  return absl::OkStatus();
}

absl::Status SlotExchange::RequestFinish() {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  RETURN_IF_ERROR(Require(!gradients_begun_, "has a gradient already; ask for the end before"));
  sink_->RequestStop();
  return absl::OkStatus();
}

absl::Status SlotExchange::Finish() {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i] || !layout_.variables()[i].spec.trainable()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", layout_.variables()[i].spec.name(), "\" has no gradient in ", SlotName()));
  }
  MutexLock lock(&mutex_);
  return Return(absl::OkStatus());
}

absl::Status SlotExchange::Drop() {
  Call call(this);
  RETURN_IF_ERROR(call.status());
  MutexLock lock(&mutex_);
  return Return(absl::CancelledError(absl::StrCat("the program dropped ", SlotName())));
}

absl::Status SlotExchange::RequireNoOpenSlot() const {
  if (state_ != State::kOpen || abandoned_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(SlotName(), " is still open; finish or drop it first"));
}

absl::Status SlotExchange::Return(absl::Status result) {
  result_ = std::move(result);
  state_ = State::kReturned;
  return absl::OkStatus();
}

absl::StatusOr<int> SlotExchange::PendingGradient(size_t variable) const {
  if (variable >= ready_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no variable ", variable, "; the model has ", ready_.size()));
  }
  const v1::VariableSpec& spec = layout_.variables()[variable].spec;
  if (!spec.trainable()) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", spec.name(), "\" is not trainable: no gradient"));
  }
  RETURN_IF_ERROR(Require(!ready_[variable], absl::StrCat("has the gradient of \"", spec.name(), "\" already")));
  return static_cast<int>(variable);
}

absl::Status SlotExchange::Require(bool condition, absl::string_view otherwise) const {
  if (condition) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(SlotName(), " ", otherwise));
}

std::string SlotExchange::SlotName() const {
  return absl::StrCat("slot ", slot_->key.slot, " of step ", slot_->key.step);
}

}  // namespace lockstep
