#include "lockstep/common/io/testing/hanging_file_system.h"

#include "absl/strings/match.h"

namespace lockstep {

void HangingFileSystem::Hang(const std::string& part) {
  MutexLock lock(&mutex_);
  part_ = part;
}

void HangingFileSystem::Release() {
  MutexLock lock(&mutex_);
  part_.reset();
  changed_.SignalAll();
}

void HangingFileSystem::AwaitHanging() {
  MutexLock lock(&mutex_);
  while (hanging_ == 0) changed_.Wait(&mutex_);
}

absl::Status HangingFileSystem::Before(Operation, const std::string& path) {
  MutexLock lock(&mutex_);
  const auto hangs = [this, &path] {
    mutex_.AssertHeld();
    return part_ && absl::StrContains(path, *part_);
  };
  if (!hangs()) return absl::OkStatus();
  ++hanging_;
  changed_.SignalAll();
  while (hangs()) changed_.Wait(&mutex_);
  --hanging_;
  return absl::OkStatus();
}

}  // namespace lockstep
