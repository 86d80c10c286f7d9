#ifndef LOCKSTEP_SERVER_RPC_VISITORS_H_
#define LOCKSTEP_SERVER_RPC_VISITORS_H_

#include <cstddef>
#include <list>
#include <memory>

#include "lockstep/common/base/mutex.h"

namespace lockstep {

// A call of which no session is known (yet).
class Visitor {
 public:
  virtual ~Visitor() = default;
  // There are too many: ends the call. On any thread; may come when the call has left already.
  virtual void OnEvicted() = 0;
};

// The visitors of a server. What their messages take is bounded by their number: when there are too many, the one that
// came first ends, since an honest call is short. Thread-safe.
class Visitors {
 public:
  explicit Visitors(size_t most) : most_(most) {}

  void Enter(std::shared_ptr<Visitor> visitor) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does nothing when it is not in.
  void Leave(const Visitor* visitor) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t most_;
  Mutex mutex_;
  // In the order of entering.
  std::list<std::shared_ptr<Visitor>> visitors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_VISITORS_H_
