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

// Where the fields of a configuration were written, for the messages about them. Empty until it is filled
// (LoadRunSpec).
class ConfigSource {
 public:
  // `overrides` are "path=value", as ApplyOverride takes them: these fields were not written in the file.
  ConfigSource(std::string file, const google::protobuf::Descriptor* root, absl::Span<const std::string> overrides);

  // Filled by the parser.
  google::protobuf::TextFormat::ParseInfoTree* lines() { return &lines_; }

  // The status, "file:12: " put before each line that begins with the path of a field, "model.layer[1].dense"; the line
  // is that of the innermost block there is. Lines about overridden fields stay as they are.
  absl::Status Locate(const absl::Status& status) const;

 private:
  // "file:12: ", or "" when the text does not begin with a field or the field was overridden.
  std::string PlaceOf(absl::string_view text) const;
  bool IsOverridden(absl::string_view path) const;

  const std::string file_;
  const google::protobuf::Descriptor* const root_;
  std::vector<std::string> overridden_;
  google::protobuf::TextFormat::ParseInfoTree lines_;
};

// The status, with "field: " before its message.
absl::Status InField(absl::string_view field, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_CONFIG_SOURCE_H_
