#ifndef LOCKSTEP_CLI_PAGE_RUN_FOLLOWER_H_
#define LOCKSTEP_CLI_PAGE_RUN_FOLLOWER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/cli/page/run_view.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/grpc_run_feed.h"

namespace lockstep {

// Keeps a RunView up to date in its own threads. Watches the chief and, whenever the chief is gone or silent, looks for
// it again at every address and in the address file. Runs from the constructor to the destructor.
class RunFollower {
 public:
  struct Options {
    FileSystem* fs = nullptr;  // must outlive this object, like all pointers
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    RunView* view = nullptr;
    MasterAddress master;
    // Starts watching a chief.
    std::function<std::unique_ptr<RunFeed>(const std::string& target)> watch;
    // Interval between two searches.
    absl::Duration period = absl::Milliseconds(500);
    // A chief, which sends a reply every second, is gone if none comes for this long. Its process may be frozen, and
    // its standby may lead at another address.
    absl::Duration patience = absl::Seconds(5);
  };

  explicit RunFollower(Options options);
  ~RunFollower();

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks for the chief once, and watches it until it is gone.
  void Follow() ABSL_LOCKS_EXCLUDED(mutex_);
  // Watches until the feed ends. Returns true if the feed delivered anything.
  bool Watch(const std::string& target, absl::Status* status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the feed if the chief is silent.
  void CheckSilence() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<RunFeed> feed_ ABSL_GUARDED_BY(mutex_);
  // The time of the feed's start or last reply, and whether CheckSilence has ended the feed.
  absl::Time heard_ ABSL_GUARDED_BY(mutex_);
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
  std::unique_ptr<PeriodicTask> silence_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_RUN_FOLLOWER_H_
