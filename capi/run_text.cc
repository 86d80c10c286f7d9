#include "lockstep/capi/run_text.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/override.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"

namespace lockstep {

absl::StatusOr<config::v1::RunSpec> ParseRunText(absl::string_view text, absl::Span<const std::string> overrides) {
  constexpr char kName[] = "run";
  config::v1::RunSpec config;
  ConfigSource source(kName, config::v1::RunSpec::descriptor(), overrides);
  RETURN_IF_ERROR(ParseTextProto(text, kName, &config, source.lines()));
  for (const std::string& override : overrides) RETURN_IF_ERROR(ApplyOverride(override, &config));
  ApplyDefaults(&config);
  RETURN_IF_ERROR(source.Locate(ValidateRunSpec(config)));
  return config;
}

}  // namespace lockstep
