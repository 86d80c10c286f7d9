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

// A disk that several processes share, on one machine or over a network, and into which faults are injected.
class Disk {
 public:
  // The files without injected faults, for readers such as the judge.
  MemoryFileSystem* memory() { return &memory_; }
  // The files with faults.
  FaultyFileSystem* faulty() { return &faulty_; }

  // Sets the maximum duration of an operation.
  void set_slowest(absl::Duration slowest) { slowest_ = slowest; }
  absl::Duration slowest() const { return slowest_; }
  // Makes operations hang until Release.
  void Hang() { hangs_ = true; }
  void Release() { hangs_ = false; }
  bool hangs() const { return hangs_; }
  // Ends all faults.
  void Heal();
  // Mark the period during which the disk has a fault. Used by the judge.
  void BeginFault() { ++faults_; }
  void EndFault(Instant now) {
    --faults_;
    last_fault_ = now;
  }
  // Returns true if the disk has had no fault since `then`.
  bool WasWellSince(Instant then) const { return faults_ == 0 && last_fault_ < then; }

 private:
  int faults_ = 0;
  Instant last_fault_ = -1;
  MemoryFileSystem memory_;
  FaultyFileSystem faulty_{&memory_};
  absl::Duration slowest_;
  bool hangs_ = false;
};

// A process's view of a disk. All file locks of a process end the moment the process ends. A ghost (TaskGroup) sees no
// files and no locks, and its writes are dropped.
class ProcessFiles : public ForwardingFileSystem {
 public:
  ProcessFiles(Process* process, Disk* disk);

  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override;
  // Releases all locks after the process has ended.
  void EndLocks() { locks_.clear(); }

 private:
  class HeldLock;

  absl::Status Before(Operation operation, const std::string& path) override;

  Process* const process_;
  Disk* const disk_;
  int64_t last_lock_ = 0;
  std::map<int64_t, std::unique_ptr<Lock>> locks_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_DISK_H_
