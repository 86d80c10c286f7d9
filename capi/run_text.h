#ifndef LOCKSTEP_CAPI_RUN_TEXT_H_
#define LOCKSTEP_CAPI_RUN_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Like LoadRunSpec, but for a configuration that a program holds as text. Its paths are relative to the working
// directory.
absl::StatusOr<config::v1::RunSpec> ParseRunText(absl::string_view text, absl::Span<const std::string> overrides);

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_RUN_TEXT_H_
