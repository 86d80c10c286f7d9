#ifndef LOCKSTEP_SERVER_CHIEF_PROGRAM_OPTIONS_H_
#define LOCKSTEP_SERVER_CHIEF_PROGRAM_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// Writes a summary at a global step.
using SummaryWriter = std::function<absl::Status(const v1::Summary& summary, int64_t global_step)>;

// The options of a chief that its program chooses, in addition to the configuration. ChiefOptions and
// train::SessionOptions derive from this struct, so that it is passed on as a whole.
struct ProgramOptions {
  // The directory for checkpoints and events. If empty, none are kept.
  std::string logdir;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
  // The base name of the chief's checkpoints, <logdir>/<checkpoint_basename>-<step>. Contains no directory.
  std::string checkpoint_basename = "model.ckpt";
  // True if the chief writes an event file, unless there is a summary_writer. Without either, AddSummary does nothing.
  bool write_events = true;
  // The directory of the chief's event file. If empty, the logdir.
  std::string summary_dir;
  // Receives all of the chief's summaries instead of the event file, which is not written. Called for the program's
  // summaries in the thread that adds them, which gets the writer's error. Called for the chief's scalars and the
  // summaries of gradients and workers in another thread, in order of arrival, which logs an error or exception and
  // continues. If null, the chief writes the event file.
  SummaryWriter summary_writer;
  // True if the chief's scalars (summary.every_steps in the configuration) include loss and global_step/sec. If false,
  // the program writes those two.
  bool writes_loss = true;
  // The period at which the chief keeps checkpoints permanently. A checkpoint that is no longer among the newest
  // `checkpoint.keep` of the configuration is kept if it was saved at least this long after the last one kept
  // permanently or, if there is none, after the run began in the logdir.
  absl::Duration keep_checkpoint_every = absl::InfiniteDuration();
  // If true, the chief continues the run in its logdir with the learning rate, optimizer settings, clips and batch size
  // of the configuration even if they differ from the run's, and records the change. If false, it refuses such a run.
  // Changes that the program itself has made since it was last started with the same settings are not such a
  // difference.
  bool change_settings = false;
  // True if the chief's logdir is empty on purpose. A new run then begins there, and workers of another run are
  // rejected (run/run_identity.h). If false, such a worker ends the chief with FailedPrecondition and exit code 2,
  // because the logdir is not the run's.
  bool new_run = false;
  // Names the program's functions that influence the weights, such as hooks that gate. The name is recorded, and an
  // unfinished run continues only with the same name. After a successful end, the name, hooks, gradient functions and
  // trained variables may change, and the record notes the change.
  std::string program;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_PROGRAM_OPTIONS_H_
