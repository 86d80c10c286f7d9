#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_BOUNDED_PARSE_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_BOUNDED_PARSE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// Parses a peer's message if that takes at most about `limit` bytes of memory. protobuf creates an object for each
// embedded message and string, however short, so two bytes may become a hundred. Errors: InvalidArgument if the bytes
// are not a message of this type; ResourceExhausted, before anything is parsed, if the message would take more memory.
absl::Status ParseBounded(absl::string_view bytes, uint64_t limit, google::protobuf::Message* message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_BOUNDED_PARSE_H_
