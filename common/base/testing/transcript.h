#ifndef LOCKSTEP_COMMON_BASE_TESTING_TRANSCRIPT_H_
#define LOCKSTEP_COMMON_BASE_TESTING_TRANSCRIPT_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Tests a state machine with a readable text of events and their effects. A file consists of scenes.
//
//   == A stop cancels the wait.          a scene, which begins with a new machine
//   # The stream may be blocked.         a comment
//   open      -> await a token           an event and its effect
//   stop      -> drop                    an event with two effects
//             -> cancel wait
//
// The library contains the main function of the test. `bazel run //FOLDER:x_test -- --rewrite` writes the current
// effects of the machine into the files of the tree. Review the difference as you would review code.

// Returns the effects of an event, one per line. Must fail the test for an unknown event.
using TranscriptMachine = std::function<std::string(absl::string_view event)>;

// Plays the scenes of a file, each with a new machine from `start`, and compares the effects with those in the file.
// `path` is relative to the workspace.
void PlayTranscript(const std::string& path, const std::function<TranscriptMachine()>& start);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_TESTING_TRANSCRIPT_H_
