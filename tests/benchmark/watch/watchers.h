#ifndef LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCHERS_H_
#define LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCHERS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {
namespace benchmark {

// A process that watches a run. The destructor kills it. The process that starts it must not have used gRPC.
class Watchers {
 public:
  struct Options {
    // The chief's address.
    std::string address;
    // A folder with a viewer's certificate. If empty, TLS is not used.
    std::string tls_dir;
    // The number of WatchRun calls, besides that of the page.
    int calls = 1;
    // The program `lockstep`, which serves a page. Its /metrics are read once a second. If empty, there is no page.
    std::string page_program;
    // The file for the page's standard error.
    std::string page_log;
  };

  // Returns once each call has received a reply, and the page's metrics have been read.
  static absl::StatusOr<std::unique_ptr<Watchers>> Start(const Options& options);
  ~Watchers();

  // Returns an error if the process has ended by itself, because a call or the page failed.
  absl::Status Check();

 private:
  explicit Watchers(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_WATCH_WATCHERS_H_
