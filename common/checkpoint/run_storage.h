#ifndef LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_

#include <string>

#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The logdir of a run, with the file system and the clock that a process uses for it. Options with these three derive
// from this struct, so that they are passed on together.
struct RunStorage {
  // The directory for checkpoints and events. If empty, none are kept.
  std::string logdir;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_
