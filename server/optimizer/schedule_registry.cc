#include "lockstep/server/optimizer/schedule_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

NameRegistry<ScheduleFunction>& TheRegistry() {
  static auto* registry = new NameRegistry<ScheduleFunction>("a schedule");
  return *registry;
}

}  // namespace

absl::Status RegisterSchedule(absl::string_view name, ScheduleFunction schedule) {
  return TheRegistry().Add(name, std::move(schedule));
}

absl::StatusOr<ScheduleFunction> FindSchedule(absl::string_view name) {
  if (auto schedule = TheRegistry().Find(name)) return *std::move(schedule);
  return TheRegistry().Lacks(absl::StrCat("optimizer.learning_rate.registered is \"", name, "\""),
                             "REGISTER_SCHEDULE in the chief's program adds one; docs/models.md shows how");
}

std::vector<std::string> RegisteredSchedules() { return TheRegistry().Names(); }

}  // namespace lockstep
