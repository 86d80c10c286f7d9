#include "lockstep/tests/simulation/world/transcript.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace lockstep {
namespace simulation {

void Transcript::Append(Instant now, absl::string_view who, std::string what) {
  lines_.push_back(absl::StrFormat("%12.6f  %-12s %s\n", static_cast<double>(now) * 1e-9, who, what));
  if (lines_.size() <= most_) return;
  lines_.pop_front();
  ++dropped_;
}

std::string Transcript::Text() const {
  std::string text = dropped_ > 0 ? absl::StrCat("(", dropped_, " earlier lines)\n") : "";
  for (const std::string& line : lines_) text += line;
  return text;
}

}  // namespace simulation
}  // namespace lockstep
