#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_TRANSCRIPT_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_TRANSCRIPT_H_

#include <cstddef>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"

namespace lockstep {
namespace simulation {

// The events of a life, one per line, with time and process. Keeps only the last lines. By default, records nothing, to
// save time; a life that fails is run again with recording. Not thread-safe.
class Transcript {
 public:
  // Keeps the last `most` lines. If `most` is 0, nothing is recorded.
  explicit Transcript(size_t most) : most_(most) {}

  bool on() const { return most_ > 0; }
  template <typename... Parts>
  void Add(Instant now, absl::string_view who, const Parts&... what) {
    if (on()) Append(now, who, absl::StrCat(what...));
  }
  std::string Text() const;

 private:
  void Append(Instant now, absl::string_view who, std::string what);

  const size_t most_;
  size_t dropped_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_TRANSCRIPT_H_
