#ifndef LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_
#define LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns `expr`, an absl::Status, from the enclosing function unless it is OK.
#define RETURN_IF_ERROR(expr)                            \
  do {                                                   \
    ::absl::Status lockstep_status_ = (expr);            \
    if (!lockstep_status_.ok()) return lockstep_status_; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()) sets x to F()'s value, or returns its error from the enclosing function.
#define ASSIGN_OR_RETURN(lhs, expr) \
  LOCKSTEP_ASSIGN_OR_RETURN_(LOCKSTEP_CONCAT_(lockstep_statusor_, __LINE__), lhs, expr)
#define LOCKSTEP_ASSIGN_OR_RETURN_(statusor, lhs, expr)    \
  auto statusor = (expr);                                  \
  if (!statusor.ok()) return std::move(statusor).status(); \
  lhs = *std::move(statusor)
#define LOCKSTEP_CONCAT_(a, b) LOCKSTEP_CONCAT_INNER_(a, b)
#define LOCKSTEP_CONCAT_INNER_(a, b) a##b

#endif  // LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_
