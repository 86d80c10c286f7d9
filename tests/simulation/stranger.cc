#include <iterator>
#include <string>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/simulation/roles.h"
#include "lockstep/tests/simulation/world.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace simulation {
namespace {

// A frame that names a session that is not there, or breaks a rule, or is none.
std::string DrawFrame(const StrangerRole& role, Random* random) {
  v1::StepRequest frame;
  frame.set_session_id(random->Next());
  frame.set_generation(random->Chance(0.7) ? role.generation() : random->Between(-1, 100));
  frame.set_step(random->Between(-2, 20));
  frame.set_first_slot(random->Between(-1, 5));
  frame.set_slot_count(random->Between(-1, 5));
  const int reports = random->Chance(0.2) ? 3000 : static_cast<int>(random->Below(3));
  for (int i = 0; i < reports; ++i) frame.add_report()->set_slot(i);
  frame.set_end(random->Chance(0.5));
  frame.set_leave(random->Chance(0.2));
  std::string bytes = frame.SerializeAsString();
  if (random->Chance(0.3)) {
    for (int i = 0; i < 4 && !bytes.empty(); ++i) bytes[random->Below(bytes.size())] ^= 1 << random->Below(8);
  }
  return bytes;
}

absl::Status Bother(Process* process, const StrangerRole& role) {
  World* const world = process->world();
  const bool never = false;
  ASSIGN_OR_RETURN(const auto connection,
                   world->network()->Connect(process, role.target, /*patient=*/false, /*deadline=*/0, &never));
  Random* const random = world->random();
  const char* const methods[] = {"Step",      "Step",       "Step",   "OpenSession", "GetCanaryValues",
                                 "Heartbeat", "GetRunSpec", "Nothing"};
  const auto call = world->network()->StartCall(connection, methods[random->Below(std::size(methods))]);
  const int frames = static_cast<int>(random->Below(4));
  for (int i = 0; i < frames; ++i) {
    call->SendRequest(DrawFrame(role, random));
    world->Sleep(random->Between(absl::Nanoseconds(1), absl::Milliseconds(5)));
  }
  // Some go without a word, some stay and say nothing.
  world->Sleep(random->Between(absl::Nanoseconds(1), absl::Milliseconds(50)));
  if (random->Chance(0.5)) call->Cancel(absl::CancelledError("the stranger has gone"));
  return absl::OkStatus();
}

}  // namespace

int RunStranger(Process* process, const StrangerRole& role) {
  World* const world = process->world();
  const int64_t visits = world->random()->Between(1, 20);
  for (int64_t i = 0; i < visits && !process->ghost() && process->stopped_at() == kNever; ++i) {
    Bother(process, role).IgnoreError();
    world->Sleep(world->random()->Between(absl::Nanoseconds(1), absl::Milliseconds(20)));
  }
  return 0;
}

}  // namespace simulation
}  // namespace lockstep
