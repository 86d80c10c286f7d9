#ifndef LOCKSTEP_COMMON_BASE_NAME_REGISTRY_H_
#define LOCKSTEP_COMMON_BASE_NAME_REGISTRY_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// Values that a program registers by name, such as the factories of its models. Create the registry at first use and
// never destroy it: registrations run before main, in any order. Thread-safe.
template <typename Value>
class NameRegistry {
 public:
  // `kind` names a value in errors: "a model".
  explicit NameRegistry(std::string kind) : kind_(std::move(kind)) {}
  NameRegistry(const NameRegistry&) = delete;
  NameRegistry& operator=(const NameRegistry&) = delete;

  // Errors: InvalidArgument for an empty name; AlreadyExists for a name in use.
  absl::Status Add(absl::string_view name, Value value) {
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(kind_, " needs a name to be registered"));
    MutexLock lock(&mutex_);
    if (values_.emplace(std::string(name), std::move(value)).second) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(kind_, " '", name, "' is registered already"));
  }

  absl::optional<Value> Find(absl::string_view name) const {
    MutexLock lock(&mutex_);
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) return absl::nullopt;
    return found->second;
  }

  // Returns the names, sorted.
  std::vector<std::string> Names() const {
    MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, value] : values_) names.push_back(name);
    return names;
  }

  // Returns NotFound: "<asked>, a model that this program lacks; it has cube, square (<advice>)".
  absl::Status Lacks(absl::string_view asked, absl::string_view advice) const {
    const std::vector<std::string> known = Names();
    return absl::NotFoundError(absl::StrCat(asked, ", ", kind_, " that this program lacks; it has ",
                                            known.empty() ? "none" : absl::StrJoin(known, ", "), " (", advice, ")"));
  }

 private:
  const std::string kind_;
  mutable Mutex mutex_;
  std::map<std::string, Value> values_ ABSL_GUARDED_BY(mutex_);
};

// Ends the program with the error unless `status` is OK. For registrations before main.
bool MustBeRegistered(const absl::Status& status);

// Implements the REGISTER_... macros, which register before main.
#define LOCKSTEP_REGISTERED_(...) LOCKSTEP_REGISTERED_NUMBERED_(__COUNTER__, __VA_ARGS__)
#define LOCKSTEP_REGISTERED_NUMBERED_(counter, ...) LOCKSTEP_REGISTERED_NAMED_(counter, __VA_ARGS__)
#define LOCKSTEP_REGISTERED_NAMED_(counter, ...) \
  [[maybe_unused]] static const bool lockstep_registered_##counter = ::lockstep::MustBeRegistered(__VA_ARGS__)

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_NAME_REGISTRY_H_
