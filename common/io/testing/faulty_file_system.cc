#include "lockstep/common/io/testing/faulty_file_system.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

int64_t FaultyFileSystem::operations() const {
  MutexLock lock(&mutex_);
  return operations_;
}

void FaultyFileSystem::FailOperation(int64_t n, absl::Status error) {
  MutexLock lock(&mutex_);
  first_failing_ = last_failing_ = operations_ + n;
  error_ = std::move(error);
  killing_ = false;
}

void FaultyFileSystem::FailFrom(int64_t n, absl::Status error) {
  MutexLock lock(&mutex_);
  first_failing_ = operations_ + n;
  last_failing_ = kNever;
  error_ = std::move(error);
  killing_ = false;
}

void FaultyFileSystem::FailMatching(Operation operation, std::string part, absl::Status error) {
  MutexLock lock(&mutex_);
  matches_.push_back({operation, std::move(part), std::move(error)});
}

void FaultyFileSystem::KillAfter(int64_t n) {
  MutexLock lock(&mutex_);
  first_failing_ = operations_ + n + 1;
  last_failing_ = kNever;
  error_ = absl::InternalError("the process was killed");
  killing_ = true;
}

void FaultyFileSystem::FillDiskAfter(uint64_t bytes) {
  MutexLock lock(&mutex_);
  room_ = bytes;
}

void FaultyFileSystem::Heal() {
  MutexLock lock(&mutex_);
  first_failing_ = last_failing_ = kNever;
  matches_.clear();
  killing_ = false;
  room_ = std::numeric_limits<uint64_t>::max();
}

absl::Status FaultyFileSystem::Before(Operation operation, const std::string& path) {
  MutexLock lock(&mutex_);
  ++operations_;
  absl::Status error;
  if (operations_ >= first_failing_ && operations_ <= last_failing_) error = error_;
  for (const Match& match : matches_) {
    if (error.ok() && match.operation == operation && absl::StrContains(path, match.part)) error = match.error;
  }
  if (error.ok()) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(), " (operation ", operations_, ", ", path, ")"));
}

absl::Status FaultyFileSystem::TakeRoom(const std::string& path, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > room_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write to ", path, ": No space left on device (", bytes, " bytes, room for ", room_, ")"));
  }
  room_ -= bytes;
  return absl::OkStatus();
}

bool FaultyFileSystem::DiesNow() const {
  MutexLock lock(&mutex_);
  return killing_ && operations_ == first_failing_;
}

absl::Status FaultyFileSystem::Append(const std::string& path, absl::string_view data, WritableFile* file) {
  const absl::Status status = Before(Operation::kAppend, path);
  if (!status.ok()) {
    if (DiesNow()) RETURN_IF_ERROR(file->Append(data.substr(0, data.size() / 2)));
    return status;
  }
  RETURN_IF_ERROR(TakeRoom(path, data.size()));
  return file->Append(data);
}

}  // namespace lockstep
