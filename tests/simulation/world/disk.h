#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_DISK_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"

namespace lockstep {
namespace simulation {

class Process;

// A disk that several processes see, of one machine or over a network. What may go wrong with it happens here.
class Disk {
 public:
  // As it is, for those who only look.
  MemoryFileSystem* memory() { return &memory_; }
  // With its faults.
  FaultyFileSystem* faulty() { return &faulty_; }

  // Every operation takes up to this long.
  void set_slowest(absl::Duration slowest) { slowest_ = slowest; }
  absl::Duration slowest() const { return slowest_; }
  // Operations hang until Release.
  void Hang() { hangs_ = true; }
  void Release() { hangs_ = false; }
  bool hangs() const { return hangs_; }
  // Nothing is wrong with it any more.
  void Heal();
  // For those who judge what came of it: something is wrong with it from Begin to End.
  void BeginFault() { ++faults_; }
  void EndFault(Instant now) {
    --faults_;
    last_fault_ = now;
  }
  // Nothing has been wrong with it since then.
  bool WasWellSince(Instant then) const { return faults_ == 0 && last_fault_ < then; }

 private:
  int faults_ = 0;
  Instant last_fault_ = -1;
  MemoryFileSystem memory_;
  FaultyFileSystem faulty_{&memory_};
  absl::Duration slowest_;
  bool hangs_ = false;
};

// One process's view of a disk. For a ghost there are no files and no locks, and what it writes goes nowhere; the locks
// of a process end with it, at that instant.
class ProcessFiles : public ForwardingFileSystem {
 public:
  ProcessFiles(Process* process, Disk* disk);

  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override;
  // The process has ended.
  void EndLocks() { locks_.clear(); }
  // From the moment at which it is about to create a file until it writes to one.
  bool creates() const { return creates_; }

 private:
  class HeldLock;

  absl::Status Before(Operation operation, const std::string& path) override;

  Process* const process_;
  Disk* const disk_;
  bool creates_ = false;
  int64_t last_lock_ = 0;
  std::map<int64_t, std::unique_ptr<Lock>> locks_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_DISK_H_
