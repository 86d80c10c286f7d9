#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_JSON_SCANNER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_JSON_SCANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// Reads the JSON (RFC 8259) of a header that describes a file's tensors: strings, lists of natural numbers, and the
// punctuation between them, in constant memory apart from the results. Each Take function skips white space. If it
// returns false, it consumes nothing.
class JsonScanner {
 public:
  explicit JsonScanner(absl::string_view text) : rest_(text) {}

  bool TakeChar(char c);
  // Takes a string of valid UTF-8 and resolves its escapes.
  bool TakeString(std::string* out);
  // Takes a list of numbers below 2^63, such as "[2,3]".
  bool TakeNumbers(std::vector<int64_t>* out);
  // Returns true if only white space is left.
  bool at_end();
  absl::string_view rest() const { return rest_; }

 private:
  void SkipSpace();
  bool TakeEscape(absl::string_view* text, std::string* out) const;
  bool TakeNumber(int64_t* out);

  absl::string_view rest_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_JSON_SCANNER_H_
