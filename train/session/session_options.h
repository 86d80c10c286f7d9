#ifndef LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_
#define LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/checkpoint/run_storage.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

// Takes a summary at a global step.
using SummaryWriter = std::function<absl::Status(const v1::Summary& summary, int64_t global_step)>;

// The role of this process in a run, and how it takes part. The `logdir` of a worker is the chief's, if this machine
// has it: there the worker, which only reads, finds that the run is over when the chief has gone (RunEndClient).
struct SessionOptions : RunStorage {
  TrainOp op;
  // The chief's process serves the run: it owns variables, steps, checkpoints and events.
  bool is_chief = true;
  // A worker: the chief's master string. The chief: empty.
  std::string master;
  // The chief: where workers connect, "HOST:PORT" (port 0: any) or "unix:/path", several separated by commas; empty:
  // all is in this process, without a socket.
  std::string listen;
  // The chief: the port that it has taken is written to this file; empty: to none.
  std::string port_file;
  // The chief: this file gets the address at which workers reach it, for masters "file:PATH": they follow a chief that
  // is started again elsewhere, and find there that the run is over. Empty: none. `advertise` is the host in it, or
  // HOST:PORT; empty: that of `listen`, or this machine's name.
  std::string address_file;
  std::string advertise;
  // The folder with ca.crt, tls.crt and tls.key (docs/security.md) for all addresses but unix sockets. Empty: that of
  // LOCKSTEP_TLS_DIR; if that is empty too, in plain text.
  std::string tls_dir;
  // Allows the chief to listen in plain text on an address that other machines can reach. It then trusts every peer
  // that can connect. LOCKSTEP_INSECURE has the same effect.
  bool insecure = false;
  // The chief: its checkpoints are <logdir>/<checkpoint_basename>-<step>. A name without a directory.
  std::string checkpoint_basename = "model.ckpt";
  // The chief: whether there is an event file. AddSummary does nothing without one.
  bool write_events = true;
  // The chief: the directory of the event file. If empty, it is the logdir.
  std::string summary_dir;
  // The chief: takes all summaries in place of the event file, which is not written: the program's by the thread that
  // adds them, which gets its error; the chief's scalars, the gradients' and those of workers by another thread. Null:
  // the event file.
  SummaryWriter summary_writer;
  // The chief: its scalars (summary.every_steps of the configuration) include loss and global_step/sec. False: the
  // program writes those.
  bool writes_loss = true;
  // For people; ProcessName("worker") when empty.
  std::string name;
  // The chief: workers in threads of this process. 0: it only serves.
  int local_workers = 1;
  // Threads that compute in each; 0: as configured.
  int compute_threads = 0;
  // The chief: values to set when nothing was restored, after the seed and a warm start. Null: none. Once there is a
  // checkpoint, it may come and go.
  InitFunction init_fn;
  // The chief: names the functions that decide about the weights, such as hooks that gate. Recorded; while the run is
  // unfinished, it is continued with the same name alone. After a good end, the name, hooks, gradient functions and
  // trained variables may differ, and the record says so.
  std::string program;
  // The chief: when a checkpoint falls out of the newest `checkpoint.keep` of the configuration, it stays permanently
  // if it was saved at least this long after the last one that stayed so, or after the run began in the logdir.
  absl::Duration keep_checkpoint_every = absl::InfiniteDuration();
  // The chief: a run that the logdir holds with another learning rate, other settings of its optimizer, its clips or
  // its batch size goes on with those of `op`, and the change is recorded. Else it is refused. What the program has
  // changed itself since it was last started with the same settings is no such difference.
  bool change_settings = false;
  // The chief: an empty logdir is meant to be one. A new run begins there, and workers of another run are refused. If
  // false, such a worker ends the chief with FailedPrecondition and exit code 2: its logdir is not the one of the run.
  bool new_run = false;
  // A worker: how long an absent chief is looked for. The configuration's when absent.
  absl::optional<absl::Duration> max_wait;
  // A worker: computes nothing before this global step. The configuration's when absent.
  absl::optional<int64_t> startup_delay_steps;
  // The chief: how long to wait for another chief of the same logdir that is still ending.
  absl::Duration predecessor_limit = absl::Seconds(30);
  // The chief, where it listens and `op` has no cluster.linger_seconds: how long it answers after the end of the run,
  // so that a process that starts late learns of the end.
  absl::Duration linger;
  // The process's; null: nothing is stopped from outside. Must outlive the session.
  StopSignal* stop = nullptr;
};

// Returns the time between two checkpoints of a chief: `chosen` by the program, or by default what the configuration of
// `op` says, which is 600 seconds unless it is set. 0 if there is no such time.
inline absl::Duration SavePeriodOf(const Choice<absl::Duration>& chosen, const TrainOp& op) {
  const config::v1::CheckpointConfig& configured = op.spec.checkpoint();
  const double seconds = configured.has_every_seconds() ? configured.every_seconds() : 600;
  return chosen.Or(absl::Seconds(seconds)).value_or(absl::ZeroDuration());
}

// Lets a worker wait for its chief as long as its own `config` says, unless it has a max_wait.
inline void SetChiefWait(const config::v1::ClusterConfig& config, SessionOptions* session) {
  if (session->is_chief || session->max_wait || !config.has_chief_wait_seconds()) return;
  session->max_wait = absl::Seconds(config.chief_wait_seconds());
}

// Returns true if summaries of a chief with these options are written.
inline bool WritesSummaries(const SessionOptions& options) {
  const bool has_directory = !options.logdir.empty() || !options.summary_dir.empty();
  return options.summary_writer != nullptr || (has_directory && options.write_events);
}

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_
