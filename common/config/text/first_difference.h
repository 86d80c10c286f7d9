#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_

#include <string>

#include "google/protobuf/message.h"

namespace lockstep {

// Describes the first field in which two messages of the same type differ: "modified: training.seed: 7 -> 8". Truncated
// to 1000 bytes, because it may contain a peer's strings. Empty if the messages are equal.
std::string FirstDifference(const google::protobuf::Message& a, const google::protobuf::Message& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_
