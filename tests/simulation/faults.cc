#include "lockstep/tests/simulation/faults.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/tests/simulation/life.h"

namespace lockstep {
namespace simulation {
namespace {

bool Always(const Plan&) { return true; }
bool WithLauncher(const Plan& plan) { return plan.launcher; }
bool WithoutLauncher(const Plan& plan) { return !plan.launcher; }
// Returns false if one worker can stall the run for a long time even though its heartbeats continue.
bool NobodyIsAwaited(const Plan& plan) {
  const config::v1::TrainingConfig& training = plan.config.training();
  return !training.has_first_arrivals() && !training.async().has_max_staleness();
}
bool NobodyIsAwaitedWithoutLauncher(const Plan& plan) { return NobodyIsAwaited(plan) && WithoutLauncher(plan); }
// Excludes plans with an address file, because a chief that has lost its directory may still overwrite that file.
bool WithTwoAddresses(const Plan& plan) { return !plan.launcher && !plan.address_file; }
bool Followed(const Plan& plan) { return plan.rules.followed; }
bool HooksAssign(const Plan& plan) { return !plan.rules.assign_at.empty() || plan.rules.assign_every > 0; }
bool MayBeEnded(const Plan& plan) { return plan.may_be_ended; }
bool ProgramMayEnd(const Plan& plan) { return plan.may_be_ended && plan.rules.followed; }
bool MayWantSomething(const Plan& plan) { return !plan.launcher && (plan.may_be_ended || plan.rules.followed); }
bool MayChange(const Plan& plan) { return plan.may_change; }
bool ManyHosts(const Plan& plan) { return !plan.one_host; }

// Returns a time between a millisecond and half a minute; all orders of magnitude are equally likely.
absl::Duration DrawTime(Life* life) {
  return absl::Milliseconds(life->random()->Between(1, int64_t{1} << life->random()->Between(1, 15)));
}

// Returns one worker, or often, if there are many, up to half of them. Returns none if none is running.
std::vector<Process*> SomeWorkers(Life* life) {
  const int workers = life->plan().workers;
  const bool many = life->plan().many_workers && life->random()->Chance(0.5);
  const int64_t count = many ? life->random()->Between(1, (workers + 1) / 2) : 1;
  std::vector<Process*> some;
  for (int64_t i = 0; i < count; ++i) {
    if (Process* const worker = life->AnyWorker()) some.push_back(worker);
  }
  return some;
}

void KillWorker(Life* life) {
  for (Process* const worker : SomeWorkers(life)) life->world()->Kill(worker);
}

void KillChief(Life* life) {
  if (life->chief() != nullptr) life->world()->Kill(life->chief());
}

void KillLauncher(Life* life) {
  if (life->launcher() != nullptr) life->world()->Kill(life->launcher());
}

void KillAll(Life* life) {
  if (life->launcher() != nullptr) life->world()->Kill(life->launcher());
  KillChief(life);
  for (Process* const worker : life->workers()) life->world()->Kill(worker);
}

void FreezeFor(Life* life, Process* process, absl::Duration time) {
  if (process == nullptr) return;
  World* const world = life->world();
  world->Freeze(process);
  life->After(time, [world, process] { world->Thaw(process); });
}

void FreezeWorker(Life* life) {
  // Often longer than any lease.
  const absl::Duration time =
      life->random()->Chance(0.5) ? life->random()->Between(absl::Seconds(1), absl::Seconds(12)) : DrawTime(life);
  for (Process* const worker : SomeWorkers(life)) FreezeFor(life, worker, time);
}
// Makes the worker hang, as if while reading its data. Its heartbeats continue.
void HangWorker(Life* life) {
  const std::vector<Process*> workers = SomeWorkers(life);
  if (workers.empty()) return;
  const absl::Duration time =
      life->random()->Chance(0.5) ? life->random()->Between(absl::Seconds(1), absl::Seconds(12)) : DrawTime(life);
  for (Process* const worker : workers) {
    worker->hangs_until = life->world()->now() + absl::ToInt64Nanoseconds(time);
    life->After(time, [worker] { worker->hangs_until = 0; });
  }
}
// Makes the worker slow: it sends each gradient within a lease, but no heartbeats, as if through a proxy that delays
// short calls.
void SlowWorker(Life* life) {
  const std::vector<Process*> workers = SomeWorkers(life);
  if (workers.empty()) return;
  const absl::Duration time = DrawTime(life);
  for (Process* const worker : workers) {
    worker->slow_until = life->world()->now() + absl::ToInt64Nanoseconds(time);
    life->After(time, [worker] { worker->slow_until = 0; });
  }
}
void FreezeChief(Life* life) { FreezeFor(life, life->chief(), DrawTime(life)); }
void FreezeAll(Life* life) {
  const absl::Duration time = DrawTime(life);
  FreezeFor(life, life->chief(), time);
  for (Process* const worker : life->workers()) FreezeFor(life, worker, time);
}

std::shared_ptr<Connection> AnyConnection(Life* life) {
  const auto connections = life->world()->network()->connections();
  return connections.empty() ? nullptr : life->random()->Pick(connections);
}

void CutConnection(Life* life) {
  if (const auto connection = AnyConnection(life)) life->world()->network()->Break(connection);
}

void BlindConnection(Life* life) {
  if (const auto connection = AnyConnection(life)) life->world()->network()->Blind(connection);
}

void CutAllConnections(Life* life) {
  for (const auto& connection : life->world()->network()->connections()) life->world()->network()->Break(connection);
}

void PartitionHost(Life* life) {
  Network* const network = life->world()->network();
  Host* const host = life->random()->Pick(life->hosts());
  network->Partition(host);
  life->After(DrawTime(life), [network, host] { network->Heal(host); });
}

void SlowNetwork(Life* life) {
  Network* const network = life->world()->network();
  const absl::Duration most = DrawTime(life) / 10;
  network->set_latency(absl::Microseconds(50), absl::Milliseconds(1) + most);
  life->After(DrawTime(life), [network] { network->set_latency(absl::Microseconds(50), absl::Microseconds(500)); });
}

void JumpClock(Life* life) {
  Host* const host = life->random()->Chance(0.8) ? life->hosts()[0] : life->random()->Pick(life->hosts());
  const absl::Duration jump = life->random()->Chance(0.7) ? absl::Hours(life->random()->Between(1, 10000))
                                                          : absl::Milliseconds(life->random()->Between(1, 5000));
  host->wall_error += life->random()->Chance(0.7) ? -jump : jump;
}

// A chief that measured leases by the wall clock would wait for the worker until the clock caught up.
void SetClockBackAndFreeze(Life* life) {
  life->hosts()[0]->wall_error -= absl::Hours(life->random()->Between(1, 1000));
  FreezeWorker(life);
}

// Marks the disk as faulty for the given time, then calls `undo`.
void BadDisk(Life* life, absl::Duration time, const std::function<void()>& undo) {
  Disk* const disk = life->disk();
  World* const world = life->world();
  disk->BeginFault();
  life->After(time, [disk, world, undo] {
    undo();
    disk->EndFault(world->now());
  });
}

void FillDisk(Life* life) {
  Disk* const disk = life->disk();
  disk->faulty()->FillDiskAfter(life->random()->Below(3000));
  BadDisk(life, DrawTime(life), [disk] { disk->Heal(); });
}

void FailOneOperation(Life* life) {
  Disk* const disk = life->disk();
  disk->faulty()->FailOperation(life->random()->Between(1, 60), absl::InternalError("Input/output error"));
  BadDisk(life, absl::Seconds(1), [disk] { disk->Heal(); });
}

using Operation = FaultyFileSystem::Operation;

void FailOperations(Life* life, const std::vector<Operation>& operations) {
  static const auto* const parts = new std::vector<std::string>{"", "model.ckpt", ".index", "checkpoint", ".tmp"};
  Disk* const disk = life->disk();
  disk->faulty()->FailMatching(life->random()->Pick(operations), life->random()->Pick(*parts),
                               absl::InternalError("Input/output error"));
  BadDisk(life, DrawTime(life), [disk] { disk->Heal(); });
}

void FailSomeOperations(Life* life) {
  FailOperations(
      life, {Operation::kOpen, Operation::kExists, Operation::kList, Operation::kRead, Operation::kRename,
             Operation::kRemove, Operation::kSync, Operation::kSyncDirectory, Operation::kCreate, Operation::kLock});
}

// Makes the disk fail while a chief starts, because a starting chief reads all files.
void FailAtStart(Life* life) {
  KillChief(life);
  FailOperations(life, {Operation::kOpen, Operation::kExists, Operation::kExists, Operation::kList, Operation::kRead});
}

void SlowDisk(Life* life) {
  Disk* const disk = life->disk();
  disk->set_slowest(DrawTime(life) / 20);
  BadDisk(life, DrawTime(life), [disk] { disk->set_slowest(absl::ZeroDuration()); });
}

void HangDisk(Life* life) {
  Disk* const disk = life->disk();
  disk->Hang();
  BadDisk(life, DrawTime(life), [disk] { disk->Release(); });
}

void CutPower(Life* life) {
  life->CutPower(life->random()->Chance(0.7) ? life->hosts()[0] : life->random()->Pick(life->hosts()));
}

void StopChief(Life* life) {
  if (life->chief() != nullptr) life->world()->Signal(life->chief());
}
void StopWorker(Life* life) {
  if (Process* const worker = life->AnyWorker()) life->world()->Signal(worker);
}
void StopLauncher(Life* life) {
  if (life->launcher() != nullptr) life->world()->Signal(life->launcher());
}
void StopAllAtOnce(Life* life) {
  // The order is random, as when a service manager stops a group.
  const bool chief_first = life->random()->Chance(0.5);
  if (chief_first) StopChief(life);
  for (Process* const worker : life->workers()) life->world()->Signal(worker);
  if (!chief_first) StopChief(life);
}

void WorkerJoins(Life* life) { life->AddWorker(); }
void WorkerLeaves(Life* life) {
  if (Process* const worker = life->AnyWorker()) life->Retire(worker);
}

void SecondChief(Life* life) { life->StartOtherChief(/*takes_over=*/false); }
void TakeOver(Life* life) {
  if (life->chief() == nullptr || !life->judge()->IsServing(life->chief())) return;
  if (life->random()->Chance(0.7)) FreezeChief(life);
  // As if removed by an administrator, or by a network file system whose server has lost its state.
  if (!life->disk()->memory()->Remove("/logdir/lock").ok()) return;
  life->judge()->OnLogdirLost(life->chief());
  life->StartOtherChief(/*takes_over=*/true);
}

// Freezes the chief at any point. It may wake while a standby replaces it, or afterwards.
void ReplaceFrozenChief(Life* life) {
  if (life->chief() == nullptr || !life->judge()->IsServing(life->chief())) return;
  FreezeChief(life);
  life->StartOtherChief(/*takes_over=*/true, life->judge()->generation());
}

void Stranger(Life* life) { life->StartStranger(); }
void Impostor(Life* life) { life->StartImpostor(); }
void Deaf(Life* life) { life->StartDeaf(); }
void Reader(Life* life) { life->StartReader(); }

void AskWorker(Life* life, ProgramAction action) {
  Process* const worker = life->AnyWorker();
  if (worker == nullptr) return;
  life->judge()->OnEndWanted(action);
  life->world()->Ask(worker, action);
}
void WorkerWantsEnd(Life* life) { AskWorker(life, ProgramAction::kEnd); }
void BlockWantsEnd(Life* life) { AskWorker(life, ProgramAction::kEndWithBlock); }
void ProgramWantsEnd(Life* life) {
  if (life->chief() == nullptr) return;
  life->judge()->OnEndWanted(ProgramAction::kEnd);
  life->world()->Ask(life->chief(), ProgramAction::kEnd);
}
void ProgramAssigns(Life* life) {
  life->judge()->OnAssignmentWanted();
  if (life->chief() != nullptr) life->world()->Ask(life->chief(), ProgramAction::kAssign);
}
void ProgramChanges(Life* life) {
  if (life->chief() != nullptr) life->world()->Ask(life->chief(), ProgramAction::kChange);
}
// Makes concurrent requests, each from its own thread.
void ProgramChangesAndAssigns(Life* life) {
  ProgramChanges(life);
  ProgramAssigns(life);
  ProgramChanges(life);
}
void ProgramChangesAndDies(Life* life) {
  ProgramChanges(life);
  World* const world = life->world();
  if (Process* const chief = life->chief()) {
    world->AtPoint(Point::kFile, life->random()->Between(1, 40), [world, chief] { world->Kill(chief); });
  }
}
void ProgramAssignsAndDies(Life* life) {
  ProgramAssigns(life);
  World* const world = life->world();
  if (Process* const chief = life->chief()) {
    world->AtPoint(Point::kFile, life->random()->Between(1, 40), [world, chief] { world->Kill(chief); });
  }
}
// Kills the program's chief once its hooks have set variables, so that the program restores a checkpoint with those
// variables and shows the hooks the same step again.
void ProgramDiesAfterItsHooksAssign(Life* life) { life->KillAfterAssignmentByHook(); }
void WantSomething(Life* life) {
  std::vector<void (*)(Life*)> actions;
  if (life->plan().rules.followed) actions = {ProgramChanges, ProgramAssigns};
  if (life->plan().may_be_ended) actions.insert(actions.end(), {WorkerWantsEnd, WorkerWantsEnd});
  if (!actions.empty()) life->random()->Pick(actions)(life);
}
void LoseWorkers(Life* life) {
  const uint64_t kind = life->random()->Below(4);
  if (kind == 0 || kind == 3) CutAllConnections(life);
  for (Process* const worker : life->workers()) {
    if (kind == 1) life->world()->Kill(worker);
    if (kind == 2) FreezeFor(life, worker, life->random()->Between(absl::Seconds(1), absl::Seconds(12)));
  }
}
// Requests a change and then loses the workers. The change makes the chief abandon the step in progress, because no
// worker is computing it.
void WantSomethingAndLoseWorkers(Life* life) {
  WantSomething(life);
  life->UnlessCalm(life->random()->Between(absl::Microseconds(1), absl::Milliseconds(3)),
                   [life] { LoseWorkers(life); });
}
// Replaces the lock file, as when the directory is restored from a copy. No other chief takes over.
void ReplaceLock(Life* life) {
  if (life->chief() == nullptr || !life->judge()->IsServing(life->chief())) return;
  MemoryFileSystem* const fs = life->disk()->memory();
  if (!fs->Remove("/logdir/lock").ok() || !fs->NewWritableFile("/logdir/lock").ok()) return;
  life->judge()->OnRival(/*takes_over=*/false);
  life->judge()->OnLogdirLost(life->chief());
}
// Replaces the lock, and soon afterwards makes a request that needs the record.
void ReplaceLockAndWantSomething(Life* life) {
  ReplaceLock(life);
  life->UnlessCalm(life->random()->Between(absl::Milliseconds(1), absl::Milliseconds(20)),
                   [life] { WantSomething(life); });
}

// Makes a request while directories cannot be synced, so that it is unknown whether the request was recorded.
void WantSomethingOfABadDisk(Life* life) {
  WantSomething(life);
  Disk* const disk = life->disk();
  disk->faulty()->FailMatching(Operation::kSyncDirectory, "", absl::InternalError("Input/output error"));
  BadDisk(life, DrawTime(life), [disk] { disk->Heal(); });
}
void ChangeSettings(Life* life) {
  life->ChangeSettings();
  life->random()->Chance(0.5) ? StopChief(life) : KillChief(life);
}

}  // namespace

const std::vector<FaultKind>& Faults() {
  static const auto* const kinds = new std::vector<FaultKind>{
      {"a worker is killed", 5, Point::kFrame, Always, KillWorker},
      {"the chief is killed", 5, Point::kFile, Always, KillChief},
      {"the launcher is killed", 3, Point::kFile, WithLauncher, KillLauncher},
      {"all are killed", 1, Point::kFile, Always, KillAll},
      {"a worker freezes", 6, Point::kFrame, Always, FreezeWorker},
      {"a worker hangs", 4, Point::kFrame, NobodyIsAwaited, HangWorker},
      {"a worker is slow, and its heartbeats are lost", 3, Point::kFrame, NobodyIsAwaited, SlowWorker},
      {"the chief freezes", 3, Point::kFrame, Always, FreezeChief},
      {"all freeze", 1, Point::kFrame, Always, FreezeAll},
      {"a connection is cut", 4, Point::kFrame, Always, CutConnection},
      {"all connections are cut", 1, Point::kFrame, Always, CutAllConnections},
      {"a connection is half open", 2, Point::kFrame, Always, BlindConnection},
      {"a host is cut off", 3, Point::kFrame, ManyHosts, PartitionHost},
      {"the network is slow", 2, Point::kFrame, Always, SlowNetwork},
      {"a clock jumps", 7, Point::kReply, Always, JumpClock},
      {"a clock is set back as a worker freezes", 3, Point::kReply, Always, SetClockBackAndFreeze},
      {"the disk is full", 2, Point::kFile, Always, FillDisk},
      {"an operation of the disk fails", 2, Point::kLook, Always, FailOneOperation},
      {"some operations of the disk fail", 2, Point::kLook, Always, FailSomeOperations},
      {"the disk fails while the chief starts", 4, Point::kLook, Always, FailAtStart},
      {"the disk is slow", 1, Point::kFile, Always, SlowDisk},
      {"the disk hangs", 1, Point::kFile, Always, HangDisk},
      {"the power is cut", 5, Point::kFile, Always, CutPower},
      {"the chief is stopped", 4, Point::kFrame, Always, StopChief},
      {"a worker is stopped", 3, Point::kFrame, Always, StopWorker},
      {"the launcher is stopped", 4, Point::kFrame, WithLauncher, StopLauncher},
      {"all are stopped together", 3, Point::kFrame, WithoutLauncher, StopAllAtOnce},
      {"a worker joins", 3, Point::kFrame, WithoutLauncher, WorkerJoins},
      {"a worker leaves", 2, Point::kFrame, WithoutLauncher, WorkerLeaves},
      {"a second chief starts", 1, Point::kFile, WithoutLauncher, SecondChief},
      {"another chief takes over", 1, Point::kFile, WithTwoAddresses, TakeOver},
      {"the chief freezes, and a standby replaces it", 6, Point::kFile, WithTwoAddresses, ReplaceFrozenChief},
      {"the lock is replaced", 2, Point::kFile, WithoutLauncher, ReplaceLock},
      {"the lock is replaced, and a request follows", 8, Point::kFrame, MayWantSomething, ReplaceLockAndWantSomething},
      {"a stranger connects", 2, Point::kFrame, WithoutLauncher, Stranger},
      {"an impostor connects", 4, Point::kFrame, NobodyIsAwaitedWithoutLauncher, Impostor},
      {"a peer connects that does not read", 4, Point::kFrame, NobodyIsAwaitedWithoutLauncher, Deaf},
      {"variables are read", 3, Point::kFrame, Always, Reader},
      {"a worker requests the end", 12, Point::kFrame, MayBeEnded, WorkerWantsEnd},
      {"a worker requests the end with its block", 8, Point::kFrame, MayBeEnded, BlockWantsEnd},
      {"the program requests the end", 8, Point::kFile, ProgramMayEnd, ProgramWantsEnd},
      {"a request arrives, and the disk fails", 6, Point::kFile, MayWantSomething, WantSomethingOfABadDisk},
      {"the program sets variables", 12, Point::kFrame, Followed, ProgramAssigns},
      {"the program sets variables and is killed", 6, Point::kFrame, Followed, ProgramAssignsAndDies},
      {"the program is killed after its hooks have set variables", 12, Point::kFrame, HooksAssign,
       ProgramDiesAfterItsHooksAssign},
      {"a request arrives, and all workers are lost", 10, Point::kFrame, MayWantSomething, WantSomethingAndLoseWorkers},
      {"the program changes settings", 12, Point::kFrame, Followed, ProgramChanges},
      {"the program changes settings and sets variables", 6, Point::kFrame, Followed, ProgramChangesAndAssigns},
      {"the program changes settings and is killed", 6, Point::kFrame, Followed, ProgramChangesAndDies},
      {"the settings are changed", 15, Point::kFile, MayChange, ChangeSettings},
  };
  return *kinds;
}

}  // namespace simulation
}  // namespace lockstep
