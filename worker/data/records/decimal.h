#ifndef LOCKSTEP_WORKER_DATA_RECORDS_DECIMAL_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_DECIMAL_H_

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Parses a decimal number as absl::SimpleAtof and absl::SimpleAtod do. Returns false for hexadecimal texts such as
// "0x10", which those accept but NumPy, pandas and scikit-learn do not read as numbers.
inline bool ParseDecimal(absl::string_view text, float* out) {
  return text.find_first_of("xX") == absl::string_view::npos && absl::SimpleAtof(text, out);
}
inline bool ParseDecimal(absl::string_view text, double* out) {
  return text.find_first_of("xX") == absl::string_view::npos && absl::SimpleAtod(text, out);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_DECIMAL_H_
