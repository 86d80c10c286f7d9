#ifndef LOCKSTEP_TRAIN_MONITORED_SCAFFOLD_H_
#define LOCKSTEP_TRAIN_MONITORED_SCAFFOLD_H_

#include <vector>

#include "absl/types/optional.h"
#include "lockstep/train/hooks/summary_saver_hook.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/supervisor/session_manager.h"

namespace lockstep::train {

// Defines how a monitored session starts, in addition to the run's configuration: how it is initialized, when it is
// ready, and what it writes. A value type.
struct Scaffold {
  // Default: SessionOptions::init_fn. None: only the seed or a warm start initializes the variables.
  Choice<InitFunction> init_fn;
  // See SupervisorOptions::init_op and init_feed_dict.
  Choice<InitOp> init_op;
  std::vector<NamedTensor> init_feed_dict;
  // Default: checks that the variables have values. None: no check.
  Choice<ReadyFunction> ready;
  // Default: checks that the variables have values if there is a local_init. None: no check.
  Choice<ReadyFunction> ready_for_local_init;
  // Default and None: there is no local state.
  Choice<LocalInitFunction> local_init;
  // Default: the loss. None: no summaries.
  Choice<SummaryProvider> summary;

  // Returns a copy in which each option that is left at its default comes from `other`.
  Scaffold Else(const Scaffold& other) const {
    Scaffold both = *this;
    both.init_fn = init_fn.Else(other.init_fn);
    both.init_op = init_op.Else(other.init_op);
    if (init_op.is_default()) both.init_feed_dict = other.init_feed_dict;
    both.ready = ready.Else(other.ready);
    both.ready_for_local_init = ready_for_local_init.Else(other.ready_for_local_init);
    both.local_init = local_init.Else(other.local_init);
    both.summary = summary.Else(other.summary);
    return both;
  }

  // Returns the options of a session manager, with the defaults filled in.
  SessionManager::Options ManagerOptions() const {
    SessionManager::Options manager;
    manager.ready = ready.Or(ReadyFunction(UninitializedVariables)).value_or(ReadyFunction());
    manager.local_init = local_init.Or(absl::nullopt).value_or(LocalInitFunction());
    absl::optional<ReadyFunction> variables_ready;
    if (manager.local_init) variables_ready = UninitializedVariables;
    manager.ready_for_local_init = ready_for_local_init.Or(variables_ready).value_or(ReadyFunction());
    return manager;
  }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_SCAFFOLD_H_
