#ifndef LOCKSTEP_SERVER_CHIEF_OWNERSHIP_FENCED_FILES_H_
#define LOCKSTEP_SERVER_CHIEF_OWNERSHIP_FENCED_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The files of a chief's logdir while its generation is the newest one. A chief writes each file in its generation's
// folder, "<logdir>/generation.N", and publishes it by renaming it out of the folder. To remove a file, it first
// renames the file into the folder. A successor removes the folder before it reads the logdir (FenceEarlier). From then
// on, nothing that the old chief does changes the logdir, even if it was frozen between a check and a write:
// NewWritableFile, Rename and Remove return FailedPrecondition. Only the direct entries of the logdir are fenced; other
// paths pass through. The destructor removes the folder. The base must outlive this object and its files. Thread-safe.
class FencedFiles : public FileSystem {
 public:
  // Enters the first generation, `least` or later, that follows those of all folders in the logdir: creates its folder
  // and locks a file in it. If several chiefs do so at the same time, each gets a different generation.
  static absl::StatusOr<std::unique_ptr<FencedFiles>> Create(FileSystem* base, const std::string& logdir,
                                                             int64_t least);
  ~FencedFiles() override;

  // Returns the generations that have a folder in the logdir, in ascending order.
  static absl::StatusOr<std::vector<int64_t>> Generations(FileSystem* base, const std::string& logdir);
  static std::string FolderOf(const std::string& logdir, int64_t generation);
  // Returns false if the generation's chief has ended and left its folder behind.
  static absl::StatusOr<bool> IsOwned(FileSystem* base, const std::string& logdir, int64_t generation);

  int64_t generation() const { return generation_; }
  const std::string& folder() const { return folder_; }

  // Removes the folders of all earlier generations. An earlier chief may still append to files that it has published
  // and not closed, so this replaces them with copies to which it has no access. Returns FailedPrecondition if a later
  // generation exists.
  absl::Status FenceEarlier();
  // Returns FailedPrecondition if a successor has removed the folder.
  absl::Status Check() const;

  // Shows other processes that use the logdir that this chief is running: writes the next number into the folder's file
  // "alive". Returns FailedPrecondition if a successor has removed the folder. Called by one thread at a time.
  absl::Status Beat();
  // The newest beat in the logdir.
  struct LastBeat {
    int64_t generation = 0;
    std::string text;
    bool operator==(const LastBeat& other) const { return generation == other.generation && text == other.text; }
  };
  // Reads the beat of the newest generation whose chief has not ended. Returns nullopt if that chief does not beat.
  static absl::StatusOr<absl::optional<LastBeat>> ReadLastBeat(FileSystem* base, const std::string& logdir);

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Remove(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override;
  absl::StatusOr<bool> IsLocked(const std::string& path) override;

 private:
  class StagedFile;

  FencedFiles(FileSystem* base, const std::string& logdir, int64_t generation, std::unique_ptr<Lock> owner);
  // Returns true for a path directly below the logdir.
  bool Covers(const std::string& path) const;
  // Returns the path inside the folder.
  std::string Staged(const std::string& path) const;
  // Returns `status`, or the error of Check if `status` is a NotFound because the folder has been removed.
  absl::Status Explain(absl::Status status) const;
  absl::Status Fence(int64_t generation);
  // Forgets a file that is not published yet. Returns true if it is open.
  bool Forget(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records for a successor that this chief may append to the published file `name`.
  absl::Status NoteOpen(absl::string_view name);
  absl::Status ReplaceByCopy(const std::string& name);

  FileSystem* const base_;
  const std::string logdir_;
  const int64_t generation_;
  const std::string folder_;
  // The canonical directory of the covered paths.
  const std::string directory_;
  // The lock that keeps chiefs that enter a generation at the same time out of this folder.
  const std::unique_ptr<Lock> owner_;
  // True if FenceEarlier has replaced all files that earlier chiefs may append to.
  bool fenced_ = false;
  int64_t beats_ = 0;
  Mutex mutex_;
  // The newest open file for each path that is not published yet.
  std::map<std::string, std::weak_ptr<const bool>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_OWNERSHIP_FENCED_FILES_H_
