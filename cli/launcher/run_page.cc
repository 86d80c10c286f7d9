#include "lockstep/cli/launcher/run_page.h"

#include <signal.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

RunPage::~RunPage() {
  if (pid_ != 0) options_.processes->Signal(pid_, SIGTERM);
}

void RunPage::Start(const std::string& master) {
  if (started_) return;
  started_ = true;
  // Removes the address of an earlier run's page.
  options_.fs->Remove(UrlFile()).IgnoreError();
  ProcessSpec spec;
  spec.command = options_.command;
  spec.command.insert(spec.command.end(),
                      {absl::StrCat("--master=", master), absl::StrCat("--logdir=", options_.logdir),
                       absl::StrCat("--http=", options_.http), "--any_port", absl::StrCat("--url_file=", UrlFile())});
  spec.log_path = LogFile();
  const auto pid = options_.processes->Start(spec);
  if (pid.ok()) pid_ = *pid;
  if (!pid.ok()) problem_ = std::string(pid.status().message());
}

absl::optional<std::string> RunPage::TakeLine() {
  if (!started_ || told_) return absl::nullopt;
  if (!problem_.empty()) {
    told_ = true;
    return absl::StrCat("there is no page: ", problem_);
  }
  const auto url = ReadFile(options_.fs, UrlFile());
  if (!url.ok()) return absl::nullopt;
  told_ = true;
  return absl::StrCat("page: ", absl::StripAsciiWhitespace(*url));
}

void RunPage::OnExit(int pid) {
  if (pid != pid_) return;
  pid_ = 0;
  if (!told_) problem_ = absl::StrCat("it has ended; ", LogFile(), " says why");
}

}  // namespace lockstep
