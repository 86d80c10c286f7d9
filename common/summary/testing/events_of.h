#ifndef LOCKSTEP_COMMON_SUMMARY_TESTING_EVENTS_OF_H_
#define LOCKSTEP_COMMON_SUMMARY_TESTING_EVENTS_OF_H_

#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Describes the events of a file, in order: "START 0", "CHECKPOINT 4", "loss 4". Fails the test if an event cannot be
// parsed.
std::vector<std::string> EventsOf(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_TESTING_EVENTS_OF_H_
