#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace lockstep {

// Parses protobuf's text format into `message`, which is cleared first. Unknown fields are errors.
// InvalidArgument is one line, made for a person with the file open:
//   run.textproto:3:12: training.steps: takes an integer, such as 1000, not "ten"
// (line and column from 1, a tab being one column; the field's path; what is wrong and what would be right).
// `file` is only a name for the message. `lines`, which may be null, learns where each field stands.
absl::Status ParseTextProto(absl::string_view text, absl::string_view file, google::protobuf::Message* message,
                            google::protobuf::TextFormat::ParseInfoTree* lines = nullptr);

// Protobuf's text format, one field a line, map entries sorted: the same for equal messages.
std::string PrintTextProto(const google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_
