#ifndef LOCKSTEP_COMMON_CONFIG_CONFIG_SOURCE_H_
#define LOCKSTEP_COMMON_CONFIG_CONFIG_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace lockstep {

// The places in a file where the fields of a configuration were written, for error messages. Empty until LoadRunSpec
// fills it.
class ConfigSource {
 public:
  // `overrides` have the form "path=value", as in ApplyOverride. The fields that they set have no place in the file.
  ConfigSource(std::string file, const google::protobuf::Descriptor* root, absl::Span<const std::string> overrides);

  // Filled by the parser.
  google::protobuf::TextFormat::ParseInfoTree* lines() { return &lines_; }

  // Prefixes each line of the status that begins with a field's path ("model.layer[1].dense") with "file:12: ", the
  // line of the innermost enclosing block. Lines about overridden fields are unchanged.
  absl::Status Locate(const absl::Status& status) const;

 private:
  // Returns "file:12: ", or "" if the text does not begin with a field or the field was overridden.
  std::string PlaceOf(absl::string_view text) const;
  bool IsOverridden(absl::string_view path) const;

  const std::string file_;
  const google::protobuf::Descriptor* const root_;
  std::vector<std::string> overridden_;
  google::protobuf::TextFormat::ParseInfoTree lines_;
};

// Prefixes the status's message with "field: ".
absl::Status InField(absl::string_view field, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_CONFIG_SOURCE_H_
