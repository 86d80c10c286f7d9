#ifndef LOCKSTEP_SERVER_OPTIMIZER_SCHEDULE_REGISTRY_H_
#define LOCKSTEP_SERVER_OPTIMIZER_SCHEDULE_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/name_registry.h"

namespace lockstep {

// Returns the learning rate of the update that takes the global step from `step` to step + 1. `initial` is the
// configured rate. Must be a pure function: the weights depend on it, and a restarted chief calls it again for the same
// steps. Its result is multiplied by the warmup and a group's rate_factor.
using ScheduleFunction = std::function<double(int64_t step, double initial)>;

// Registers the function under `name`, for LearningRate.registered. Thread-safe. Returns AlreadyExists if the name is
// in use, and InvalidArgument if it is empty.
absl::Status RegisterSchedule(absl::string_view name, ScheduleFunction schedule);

// Returns the function registered under `name`. A NotFound error lists the registered names. Thread-safe.
absl::StatusOr<ScheduleFunction> FindSchedule(absl::string_view name);

// Returns the registered names, sorted. Thread-safe.
std::vector<std::string> RegisteredSchedules();

// Registers a schedule. Use it at namespace scope in a source file whose library has alwayslink = True and is linked
// into the chief's program. A duplicate name ends the program:
//   REGISTER_SCHEDULE("halved", [](int64_t step, double initial) { return initial / (1 + step / 1000); });
#define REGISTER_SCHEDULE(name, ...) LOCKSTEP_REGISTERED_(::lockstep::RegisterSchedule(name, __VA_ARGS__))

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_SCHEDULE_REGISTRY_H_
