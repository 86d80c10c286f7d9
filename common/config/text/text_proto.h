#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace lockstep {

// Parses protobuf's text format into `message`, which is cleared first. Unknown fields are errors. InvalidArgument is
// one line for a user with the file open:
//   run.textproto:3:12: training.steps: takes an integer, such as 1000, not "ten"
// The line contains the line and column (counted from 1, with a tab as one column), the field's path, the problem and a
// valid alternative. `file` is only a name for the message. `lines`, which may be null, receives the line of each
// field.
absl::Status ParseTextProto(absl::string_view text, absl::string_view file, google::protobuf::Message* message,
                            google::protobuf::TextFormat::ParseInfoTree* lines = nullptr);

// Prints protobuf's text format, one field per line and map entries sorted, so that equal messages print equally.
std::string PrintTextProto(const google::protobuf::Message& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_TEXT_PROTO_H_
