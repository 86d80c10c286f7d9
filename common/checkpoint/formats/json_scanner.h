#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_JSON_SCANNER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_JSON_SCANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// Reads the JSON (RFC 8259) of a header that says what tensors a file has: strings, lists of natural numbers, and the
// signs between them, in constant memory beyond what it returns. Each Take skips white space and consumes nothing when
// it returns false.
class JsonScanner {
 public:
  explicit JsonScanner(absl::string_view text) : rest_(text) {}

  bool TakeChar(char c);
  // Of valid UTF-8, its escapes resolved.
  bool TakeString(std::string* out);
  // "[2,3]", of numbers below 2^63.
  bool TakeNumbers(std::vector<int64_t>* out);
  // Whether nothing but white space is left.
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
