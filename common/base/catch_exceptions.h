#ifndef LOCKSTEP_COMMON_BASE_CATCH_EXCEPTIONS_H_
#define LOCKSTEP_COMMON_BASE_CATCH_EXCEPTIONS_H_

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

// Calls a user's `function`, which returns a Status or a StatusOr, and returns its result. An exception becomes an
// Internal error with the exception's message. The library itself never throws.
template <typename Function>
auto CatchExceptions(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("exception: ", exception.what()));
  } catch (...) {
    return absl::InternalError("exception of a type without a message");
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CATCH_EXCEPTIONS_H_
