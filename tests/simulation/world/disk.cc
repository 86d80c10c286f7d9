#include "lockstep/tests/simulation/world/disk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

const char* NameOf(ForwardingFileSystem::Operation operation) {
  static constexpr const char* kNames[] = {"create",         "open", "exists", "list",   "mkdir", "rename", "remove",
                                           "sync directory", "lock", "read",   "append", "flush", "sync",   "close"};
  return kNames[static_cast<int>(operation)];
}

absl::Status Gone() { return absl::FailedPreconditionError("the process was killed"); }

}  // namespace

void Disk::Heal() {
  faulty_.Heal();
  slowest_ = absl::ZeroDuration();
  hangs_ = false;
}

class ProcessFiles::HeldLock : public FileSystem::Lock {
 public:
  HeldLock(ProcessFiles* files, int64_t number) : files_(files), number_(number) {}
  ~HeldLock() override {
    const LifeScheduler::Uninterrupted uninterrupted(files_->process_->world()->scheduler());
    const auto it = files_->locks_.find(number_);
    if (it != files_->locks_.end()) files_->locks_.erase(it);
  }
  absl::Status Check() const override {
    RETURN_IF_ERROR(files_->Before(Operation::kLock, "the lock"));
    // Without this, the process could be killed while Check acquires a mutex, which would destroy the file lock.
    const LifeScheduler::Uninterrupted uninterrupted(files_->process_->world()->scheduler());
    const auto it = files_->locks_.find(number_);
    return it == files_->locks_.end() ? Gone() : it->second->Check();
  }

 private:
  ProcessFiles* const files_;
  const int64_t number_;
};

ProcessFiles::ProcessFiles(Process* process, Disk* disk)
    : ForwardingFileSystem(disk->faulty()), process_(process), disk_(disk) {}

absl::Status ProcessFiles::Before(Operation operation, const std::string& path) {
  if (process_->ghost()) return Gone();
  World* const world = process_->world();
  const bool looks = operation == Operation::kRead || operation == Operation::kExists || operation == Operation::kOpen;
  if (!looks) world->transcript()->Add(world->now(), process_->name(), NameOf(operation), " ", path);
  world->OnPoint(looks ? Point::kLook : Point::kFile);
  if (disk_->slowest() > absl::ZeroDuration() && world->random()->Chance(0.5)) {
    world->Sleep(world->random()->Between(absl::ZeroDuration(), disk_->slowest()));
  }
  while (disk_->hangs() && !process_->ghost()) world->Sleep(absl::Milliseconds(20));
  if (process_->ghost()) return Gone();
  if (operation == Operation::kRename) world->OnRename(process_, path);
  return absl::OkStatus();
}

absl::Status ProcessFiles::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Before(Operation::kRename, absl::StrCat(from, " to ", to)));
  // Ensures that the judge is notified of a rename the moment it happens.
  const LifeScheduler::Uninterrupted uninterrupted(process_->world()->scheduler());
  RETURN_IF_ERROR(base()->Rename(from, to));
  process_->world()->OnRenamed(process_, to);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> ProcessFiles::LockFile(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kLock, path));
  const LifeScheduler::Uninterrupted uninterrupted(process_->world()->scheduler());
  ASSIGN_OR_RETURN(locks_[++last_lock_], base()->LockFile(path));
  return std::make_unique<HeldLock>(this, last_lock_);
}

}  // namespace simulation
}  // namespace lockstep
