#ifndef LOCKSTEP_CAPI_SLOT_EXCHANGE_H_
#define LOCKSTEP_CAPI_SLOT_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/tensor/elements.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A slot for the program to compute. Its pointers are valid while SlotExchange::Compute runs.
struct ForeignSlot {
  SlotKey key;
  // Seed for random number generators. Depends only on the key.
  uint64_t seed = 0;
  bool canary = false;
  absl::Span<const int64_t> indices;
  VariableValues values;
  bool fresh = false;  // the first of a session
};

// Hands slots from a worker's thread to a program's threads, one at a time, and hands the results back to the slot's
// sink. The worker's thread calls Compute and Close. The program calls Take and then the functions for the slot. Every
// misuse by the program is an error: FailedPrecondition for calls out of order, InvalidArgument for wrong arguments.
// Thread-safe. The functions for the slot reject concurrent calls.
class SlotExchange {
 public:
  // `layout` must outlive this object.
  explicit SlotExchange(const ParameterLayout* layout) : layout_(*layout) {}

  // Offers a slot and blocks until the program is done with it. Returns the program's result. Returns Cancelled after
  // Stop if no thread has taken the slot, and after Cancel unless the program was already done with it.
  absl::Status Compute(const ForeignSlot& slot, GradientSink* sink) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Take return `end`, or OutOfRange if `end` is OK.
  void Close(absl::Status end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Withdraws the current slot if no thread has taken it, and all later slots.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Like Stop, but also takes an open slot away from the program.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for a slot for at most `timeout`. The slot is then open until Finish or Drop.
  //
  // Errors: DeadlineExceeded; Cancelled if Stop has withdrawn the slot; FailedPrecondition while a slot is open, or if
  // the calling thread's floating-point mode would produce different bits; the error passed to Close.
  absl::StatusOr<ForeignSlot> Take(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // A function that finishes or drops a slot. Returns false to receive no more slots; the slot may then be open.
  using SlotFunction = absl::FunctionRef<bool(const ForeignSlot& slot)>;
  // Makes the worker's thread call `function` for each slot, for at most `timeout`, so that no slot waits for another
  // thread. Returns after the last call.
  //
  // Errors: Cancelled if `function` returned false; FailedPrecondition if it left a slot open, or if another thread is
  // in Run; otherwise as from Take.
  absl::Status Run(absl::Duration timeout, SlotFunction function) ABSL_LOCKS_EXCLUDED(mutex_);

  // Report the results of the open slot: the loss once, then the weight, metrics and update ops, then gradients. Loss
  // returns Cancelled if the slot is no longer wanted.
  absl::Status Loss(float loss) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the slot's weight in the step, at most once. See GradientSink::OnWeight.
  absl::Status Weight(float weight) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Metric(const std::string& name, float value) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Update(size_t op, const Elements& value) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<float*> Gradient(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Ready(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requests that the run end with the slot's step.
  absl::Status RequestFinish() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns InvalidArgument if a result is missing. The slot then stays open.
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Drop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class State { kIdle, kOffered, kOpen, kReturned };
  // During its lifetime, keeps the slot open and reserves the slot's sink for the calling thread.
  class Call;

  // Returns `variable` as an index, or an error if it is not trainable or its gradient is already complete.
  absl::StatusOr<int> PendingGradient(size_t variable) const;
  absl::Status Require(bool condition, absl::string_view otherwise) const;
  absl::Status Return(absl::Status result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RequireNoOpenSlot() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the offered slot to the function of Run. Releases the lock during the call.
  void CallFunction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string SlotName() const;

  const ParameterLayout& layout_;
  Mutex mutex_;
  CondVar changed_;
  // Signaled when Run may be able to return.
  CondVar run_changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  // True while one of the program's threads is calling the sink.
  bool in_call_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  // The function of Run, if it wants slots.
  const SlotFunction* function_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool in_function_ ABSL_GUARDED_BY(mutex_) = false;
  // The reason that the function gets no more slots.
  absl::optional<absl::Status> function_end_ ABSL_GUARDED_BY(mutex_);

  // The slot and its results so far. The worker's thread writes them in kIdle, and the program's threads use them
  // during a Call.
  const ForeignSlot* slot_ = nullptr;
  GradientSink* sink_ = nullptr;
  bool loss_given_ = false;
  bool weight_given_ = false;
  bool gradients_begun_ = false;
  std::vector<bool> asked_;    // whether the gradient's memory was requested, by variable
  std::vector<bool> ready_;    // by variable
  std::vector<bool> updated_;  // by update op
};

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_SLOT_EXCHANGE_H_
