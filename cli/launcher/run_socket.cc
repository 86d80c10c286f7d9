#include "lockstep/cli/launcher/run_socket.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

absl::Status Unsafe(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("no socket in ", path, ": ", why));
}

absl::Status Failed(const std::string& path) { return Unsafe(path, absl::ErrnoToStatus(errno, "").message()); }

// Checks that only this user and root can replace the directory's entries.
absl::Status CheckPlace(const std::string& place) {
  struct stat directory;
  if (stat(place.c_str(), &directory) != 0) return Failed(place);
  if (!S_ISDIR(directory.st_mode)) return Unsafe(place, "it is not a directory");
  if (directory.st_uid != geteuid() && directory.st_uid != 0) return Unsafe(place, "it is another user's");
  const bool others_write = (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (directory.st_mode & S_ISVTX) == 0) return Unsafe(place, "others may write to it");
  return absl::OkStatus();
}

// Creates the directory, or checks that an existing one is equally private.
absl::Status MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return Failed(path);
  struct stat directory;
  if (lstat(path.c_str(), &directory) != 0) return Failed(path);
  if (!S_ISDIR(directory.st_mode)) return Unsafe(path, "it is not a directory");
  if (directory.st_uid != geteuid()) return Unsafe(path, "it is another user's");
  if ((directory.st_mode & (S_IRWXG | S_IRWXO)) != 0) return Unsafe(path, "others may enter it");
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeIn(const std::string& place, const std::string& name) {
  const std::string directory = absl::StrCat(place, "/lockstep-", geteuid());
  const std::string path = absl::StrCat(directory, "/", name);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return Unsafe(directory, "its path is too long");
  // The chief's addresses are separated by commas.
  if (!absl::StartsWith(path, "/") || absl::StrContains(path, ",")) {
    return Unsafe(directory, "its path is relative or has a comma");
  }
  RETURN_IF_ERROR(CheckPlace(place));
  RETURN_IF_ERROR(MakePrivate(directory));
  return path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunSocket>> RunSocket::Create(const std::vector<std::string>& places,
                                                             const std::string& logdir) {
  struct stat run;
  if (stat(logdir.c_str(), &run) != 0) return Failed(logdir);
  const std::string name = absl::StrCat(absl::Hex(run.st_dev), "-", absl::Hex(run.st_ino), ".sock");
  absl::Status why = absl::FailedPreconditionError("no place for a socket");
  for (const std::string& place : places) {
    absl::StatusOr<std::string> path = MakeIn(place, name);
    if (path.ok()) return std::unique_ptr<RunSocket>(new RunSocket(*std::move(path)));
    why = path.status();
  }
  return why;
}

std::vector<std::string> RunSocket::UsualPlaces() {
  std::vector<std::string> places;
  const char* const runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') places.emplace_back(runtime);
  places.emplace_back("/tmp");
  return places;
}

RunSocket::~RunSocket() { unlink(path_.c_str()); }

}  // namespace lockstep
