#ifndef LOCKSTEP_CLI_PAGE_PAGE_SERVER_H_
#define LOCKSTEP_CLI_PAGE_PAGE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/cli/page/http_server.h"
#include "lockstep/cli/page/run_follower.h"
#include "lockstep/cli/page/run_view.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Serves a run's page. Follows a chief or reads a logdir, and serves the run's state over HTTP, from Start to the
// destructor. Has one thread for HTTP, one that follows the chief, and one that reads files.
class PageServer {
 public:
  struct Options {
    FileSystem* fs = nullptr;  // must outlive the page, like the clock
    Clock* clock = nullptr;
    // The chief to follow. If nullopt, the page shows the logdir's contents.
    absl::optional<MasterAddress> master;
    std::string master_text;
    // The page's credentials for the chief.
    Credentials credentials;
    // The run's directory. If empty, the page uses the directory that the chief names, if this machine has it.
    std::string logdir;
    // Its handler is ignored.
    HttpServer::Options http;
    // If true, uses any free port if the requested one is in use.
    bool any_port = false;
    // Interval between searches for evaluations and digests.
    absl::Duration file_period = absl::Seconds(2);
  };

  // Returns errors from HttpServer::Start and, without a master, from ReadRecordedRun.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(Options options);

  const std::string& url() const { return server_->url(); }

 private:
  explicit PageServer(Options options);

  absl::Status Listen();
  void ReadFiles();
  void ReadDigest();
  HttpReply Answer(const HttpRequest& request) const;

  const Options options_;
  RunView view_;
  // The checkpoint whose digest was read, and the recorded run that is shown. Used by the thread that reads files.
  std::string digested_;
  std::string recorded_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RunFollower> follower_;
  std::unique_ptr<PeriodicTask> files_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_PAGE_PAGE_SERVER_H_
