#ifndef LOCKSTEP_CLI_LAUNCHER_RUN_PAGE_H_
#define LOCKSTEP_CLI_LAUNCHER_RUN_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The process that serves a run's page (`lockstep page`), from Start to the destructor. If the page cannot be started
// or ends, the run does not fail, and the page is not started again. Not thread-safe.
class RunPage {
 public:
  struct Options {
    ProcessTable* processes = nullptr;  // must outlive this, like `fs`
    FileSystem* fs = nullptr;
    // The program and its subcommand: {"lockstep", "page"}.
    std::vector<std::string> command;
    std::string http;
    std::string logdir;
    // The directory for the page's log and the file with its address.
    std::string log_directory;
  };

  explicit RunPage(Options options) : options_(std::move(options)) {}
  // Asks the process to end.
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;

  // Starts the page for a chief, once.
  void Start(const std::string& master);
  // Returns a human-readable line the first time that it is called after the page is up or has failed. Otherwise
  // returns nullopt.
  absl::optional<std::string> TakeLine();
  // Must be called for each exit that the process table returns. Ignores processes other than the page's.
  void OnExit(int pid);

 private:
  std::string UrlFile() const { return JoinPath(options_.log_directory, "page.url"); }
  std::string LogFile() const { return JoinPath(options_.log_directory, "page.log"); }

  const Options options_;
  bool started_ = false;
  bool told_ = false;
  std::string problem_;
  int pid_ = 0;  // 0 if not running
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_RUN_PAGE_H_
