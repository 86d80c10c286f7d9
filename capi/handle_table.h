#ifndef LOCKSTEP_CAPI_HANDLE_TABLE_H_
#define LOCKSTEP_CAPI_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// Objects that a program refers to by number, so that using a wrong or freed number is an error. Numbers are never
// reused, not even by another table. A found object lives until its last user drops it. Thread-safe.
template <typename T>
class HandleTable {
 public:
  // `kind` is what messages call an object, e.g. "worker".
  explicit HandleTable(std::string kind) : kind_(std::move(kind)) {}

  int64_t Add(std::shared_ptr<T> object) ABSL_LOCKS_EXCLUDED(mutex_) {
    const int64_t id = NextHandle();
    MutexLock lock(&mutex_);
    objects_[id] = std::move(object);
    return id;
  }
  // Returns the object, or InvalidArgument if no object has this number.
  absl::StatusOr<std::shared_ptr<T>> Find(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const auto found = objects_.find(id);
    if (found == objects_.end()) return None(id);
    return found->second;
  }
  // Like Find, but also removes the object.
  absl::StatusOr<std::shared_ptr<T>> Take(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const auto found = objects_.find(id);
    if (found == objects_.end()) return None(id);
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  absl::Status None(int64_t id) const {
    return absl::InvalidArgumentError(absl::StrCat(id, " is no ", kind_, ", or was freed"));
  }

  const std::string kind_;
  Mutex mutex_;
  std::map<int64_t, std::shared_ptr<T>> objects_ ABSL_GUARDED_BY(mutex_);

  static int64_t NextHandle();
};

// The next number, shared by all tables.
inline std::atomic<int64_t> next_handle{1};

template <typename T>
int64_t HandleTable<T>::NextHandle() {
  return next_handle.fetch_add(1);
}

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_HANDLE_TABLE_H_
