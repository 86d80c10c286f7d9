#ifndef LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_
#define LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_

#include <string>

#include "google/protobuf/message.h"

namespace lockstep {

// The first field in which two messages of one type differ, for people: "modified: training.seed: 7 -> 8". Cut at 1000
// bytes, as a peer's strings may stand in it. Empty when they are equal.
std::string FirstDifference(const google::protobuf::Message& a, const google::protobuf::Message& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_TEXT_FIRST_DIFFERENCE_H_
