#ifndef LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_

#include <string>

#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The logdir of a run, and the file system and the clock by which a process works on it. Options that have them derive
// from this, so that they are passed on as one.
struct RunStorage {
  // The directory of checkpoints and events. If empty, none are kept.
  std::string logdir;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_RUN_STORAGE_H_
