#ifndef LOCKSTEP_TESTS_SIMULATION_STALENESS_WATCH_H_
#define LOCKSTEP_TESTS_SIMULATION_STALENESS_WATCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/common/step/step_frame.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// A check for runs with async { max_staleness }. It detects a chief that gives a token to a worker that is too far
// ahead of another one. The check sees only messages, so it counts only what is certain: the contributions that the
// worker in front knows to be accepted, and everything that the other worker has sent. The other worker must have
// joined later, because a joining worker starts level with the slowest one.
class StalenessWatch {
 public:
  explicit StalenessWatch(int64_t max_staleness) : max_staleness_(max_staleness) {}

  // Called before the chief handles the frame.
  void OnFrame(const std::shared_ptr<Call>& stream, const StepFrame& frame);
  // Called after the chief has created the reply.
  void OnReply(const std::shared_ptr<Call>& stream, const StepReplyFrame& reply, Instant now);
  // Called when a worker may have stopped counting. The chief decides this before it sends a message about it.
  void Forget();
  // Returns a description of a violation, or an empty string if there is none. Reports a violation only once later
  // messages can no longer reveal a valid reason for the token.
  std::string Check(Instant now);

 private:
  struct Worker {
    int64_t accepted = 0;
    int64_t sent = 0;
    int64_t joined = 0;  // 0 before the first token
    // The number of contributions that each earlier worker had sent when this one joined.
    std::map<const Call*, int64_t> before;
  };
  struct Suspicion {
    std::weak_ptr<Call> behind;
    int64_t ahead = 0;
    Instant since = 0;
  };

  const int64_t max_staleness_;
  int64_t joins_ = 0;
  std::map<std::shared_ptr<Call>, Worker> workers_;
  std::vector<Suspicion> suspicions_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_STALENESS_WATCH_H_
