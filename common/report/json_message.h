#ifndef LOCKSTEP_COMMON_REPORT_JSON_MESSAGE_H_
#define LOCKSTEP_COMMON_REPORT_JSON_MESSAGE_H_

#include <string>

#include "google/protobuf/message.h"

namespace lockstep {

// Options of JsonMessage, which returns a message as one JSON object with the field names of the .proto. The format is
// protobuf's JSON, except that 64-bit integers are numbers, and NaN and infinities are null. Many readers lose
// precision in numbers beyond 2^53.
struct JsonMessageOptions {
  // Also writes fields without presence that have their default value.
  bool defaults = false;
  // Writes each field on its own line.
  bool lines = false;
};
std::string JsonMessage(const google::protobuf::Message& message, const JsonMessageOptions& options = {});

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_JSON_MESSAGE_H_
