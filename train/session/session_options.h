#ifndef LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_
#define LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/server/chief/program_options.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/worker/session/worker_waits.h"

namespace lockstep::train {

using ::lockstep::SummaryWriter;

struct HeldSession;
struct SessionOptions;

// Opens a session: OpenHeldSession, or a test's substitute.
using SessionOpener = std::function<absl::StatusOr<HeldSession>(const SessionOptions&)>;

// This process's role in a run, and the options of that role. On a worker, `logdir` is the chief's logdir, if this
// machine can read it. The worker never writes to it, and only reads there whether the run is over when the chief is
// gone (RunEndClient).
struct SessionOptions : ProgramOptions, WorkerWaits {
  TrainOp op;
  // True in the chief's process, which serves the run and owns its variables, steps, checkpoints and events.
  bool is_chief = true;
  // On a worker, the master string, which specifies the chief's address. Empty on the chief.
  std::string master;
  // The chief's addresses for workers, separated by commas. Each is "HOST:PORT", with port 0 for any port, or
  // "unix:/path". If empty, there is no socket, and all workers are in this process.
  std::string listen;
  // The file to which the chief writes its bound port. If empty, it is not written.
  std::string port_file;
  // The file to which the chief writes its address, for workers with the master "file:PATH". If the chief is restarted
  // elsewhere, workers find the new address there; when the run is over, the file says so. If empty, no file is
  // written. `advertise` is the host in the address, or HOST:PORT. If `advertise` is empty, the host is that of
  // `listen` or this machine's name.
  std::string address_file;
  std::string advertise;
  // The folder with ca.crt, tls.crt and tls.key (docs/security.md) for all addresses except Unix sockets. If empty,
  // LOCKSTEP_TLS_DIR names it. If that is also empty, connections use plain text.
  std::string tls_dir;
  // Allows the chief to listen in plain text on an address that other machines can reach. It then trusts every peer
  // that can connect. Setting LOCKSTEP_INSECURE has the same effect.
  bool insecure = false;
  // The display name of this process. If empty, ProcessName("worker").
  std::string name;
  // The number of workers that the chief runs as threads of this process. If 0, the chief only serves.
  int local_workers = 1;
  // The number of compute threads of each worker. If 0, the configured number.
  int compute_threads = 0;
  // Returns initial values. The chief calls it if nothing was restored, and sets the values after the seed or a warm
  // start. May be null. Once there is a checkpoint, the program may add or remove the function.
  InitFunction init_fn;
  // Maximum time that the chief waits for an earlier chief of the same logdir that is still shutting down.
  absl::Duration predecessor_limit = absl::Seconds(30);
  // The time for which a listening chief keeps answering after the end of the run, so that processes that start late
  // learn of the end. Ignored if `op` has cluster.linger_seconds.
  absl::Duration linger;
  // The process's stop signal, which must outlive the session. If null, nothing stops the session from outside.
  StopSignal* stop = nullptr;
  // Opens this session in a Supervisor, a MonitoredSession or a SessionManager. If null, OpenHeldSession.
  SessionOpener open;
};

// Returns the time between a chief's periodic checkpoints: `chosen` if the program set it, otherwise the period
// configured in `op`, which defaults to 600 seconds. Returns 0 if periodic checkpoints are disabled.
inline absl::Duration SavePeriodOf(const Choice<absl::Duration>& chosen, const TrainOp& op) {
  const config::v1::CheckpointConfig& configured = op.spec.checkpoint();
  const double seconds = configured.has_every_seconds() ? configured.every_seconds() : 600;
  return chosen.Or(absl::Seconds(seconds)).value_or(absl::ZeroDuration());
}

// Unless max_wait is set, sets it on a worker to the time that its own `config` says it waits for its chief.
inline void SetChiefWait(const config::v1::ClusterConfig& config, SessionOptions* session) {
  if (session->is_chief || session->max_wait || !config.has_chief_wait_seconds()) return;
  session->max_wait = absl::Seconds(config.chief_wait_seconds());
}

// Returns true if a chief with these options writes summaries.
inline bool WritesSummaries(const SessionOptions& options) {
  const bool has_directory = !options.logdir.empty() || !options.summary_dir.empty();
  return options.summary_writer != nullptr || (has_directory && options.write_events);
}

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_SESSION_OPTIONS_H_
