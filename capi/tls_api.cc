#include "lockstep/capi/tls_api.h"

#include <string>

#include "lockstep/capi/answer.h"
#include "lockstep/capi/lockstep.h"
#include "lockstep/capi/log_forwarding.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/credentials_flags.h"

namespace lockstep {
namespace {

// The directory of certificates that the program has chosen. Thread-safe.
class ChosenDirectory {
 public:
  std::string Get() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return directory_;
  }
  void Set(std::string directory) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    directory_ = std::move(directory);
  }

 private:
  Mutex mutex_;
  std::string directory_ ABSL_GUARDED_BY(mutex_) = TlsDirOfEnvironment();
};

ChosenDirectory& Chosen() {
  static auto* const chosen = new ChosenDirectory();
  return *chosen;
}

}  // namespace

absl::StatusOr<Credentials> LibraryCredentials() {
  return LoadClientCredentials(FileSystem::Real(), Chosen().Get(), /*token_file=*/"");
}

}  // namespace lockstep

int lockstep_use_tls(const char* directory) {
  return lockstep::Answer([&]() -> absl::Status {
    if (directory != nullptr) RETURN_IF_ERROR(lockstep::RequireText(directory, "directory"));
    lockstep::InitializeLibrary();
    const std::string chosen = directory == nullptr ? lockstep::TlsDirOfEnvironment() : directory;
    // If this fails, the previous choice stays in effect.
    RETURN_IF_ERROR(lockstep::LoadClientCredentials(lockstep::FileSystem::Real(), chosen, "").status());
    lockstep::Chosen().Set(chosen);
    return absl::OkStatus();
  });
}
