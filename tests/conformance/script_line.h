#ifndef LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_LINE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_LINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"

namespace lockstep::train {

// A line of a script, "WORD... NAME=VALUE...", with which a Python test controls the program under test. A value type.
struct ScriptLine {
  explicit ScriptLine(const std::string& text) {
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty()))) {
      const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (part.find('=') == std::string::npos) {
        words.push_back(part);
      } else {
        values[pair.first] = pair.second;
      }
    }
  }

  std::string Word(size_t index) const { return index < words.size() ? words[index] : ""; }
  std::string Text(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }
  absl::optional<double> Number(const std::string& name) const {
    if (values.count(name) == 0) return absl::nullopt;
    double number = 0;
    CHECK(absl::SimpleAtod(Text(name), &number)) << name << "=" << Text(name);
    return number;
  }
  absl::optional<int64_t> Int(const std::string& name) const {
    const absl::optional<double> number = Number(name);
    return number ? absl::make_optional(static_cast<int64_t>(*number)) : absl::nullopt;
  }
  absl::optional<absl::Duration> Seconds(const std::string& name) const {
    const absl::optional<double> number = Number(name);
    return number ? absl::make_optional(absl::Seconds(*number)) : absl::nullopt;
  }

  std::vector<std::string> words;
  std::map<std::string, std::string> values;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_LINE_H_
