#ifndef LOCKSTEP_CAPI_TESTING_HOSTED_CHIEF_H_
#define LOCKSTEP_CAPI_TESTING_HOSTED_CHIEF_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/server/process/chief_host.h"

namespace lockstep {

// A chief in a test's process that does not watch for signals. Runs ChiefHost in its own thread. Create waits until the
// chief serves. The destructor stops it and waits until its last step is saved. Thread-safe.
class HostedChief {
 public:
  struct Options {
    // Validated, with defaults.
    config::v1::RunSpec run;
    // If empty, nothing is saved.
    std::string logdir;
  };

  // Returns errors from ChiefHost::Create and Serve.
  static absl::StatusOr<std::unique_ptr<HostedChief>> Create(const Options& options);
  ~HostedChief();

  // Returns the master string for workers.
  const std::string& address() const { return address_; }
  // Returns the result of the run (ChiefHost::Wait).
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit HostedChief(const Options& options);
  // The body of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnServing(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<ChiefHost> host_;
  Mutex mutex_;
  CondVar changed_;
  // The result of starting the chief. Absent until it is known.
  absl::optional<absl::Status> serving_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  // Constant after Create.
  std::string address_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_TESTING_HOSTED_CHIEF_H_
