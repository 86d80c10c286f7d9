#include "lockstep/server/chief/ownership/fenced_files.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr char kFolderPrefix[] = "generation.";
constexpr char kOpenPrefix[] = "open.";
constexpr char kAliveFile[] = "alive";
// Locked by the chief that owns the folder.
constexpr char kOwnerFile[] = "owner";
// Maximum number of attempts to empty a folder. A chief that is still writing may create files in its folder meanwhile.
constexpr int kMostTries = 1000;
constexpr uint64_t kPieceSize = 1 << 20;

absl::optional<int64_t> GenerationOf(absl::string_view name) {
  int64_t generation;
  if (!absl::ConsumePrefix(&name, kFolderPrefix) || !absl::SimpleAtoi(name, &generation) || generation < 0) {
    return absl::nullopt;
  }
  return generation;
}

// The name is reversed because TensorBoard treats every file with "tfevents" in its name as an event file.
std::string OpenMark(absl::string_view name) {
  return absl::StrCat(kOpenPrefix, std::string(name.rbegin(), name.rend()));
}

// Removes a folder with its files. Calls `before` with each name before removing the file.
absl::Status RemoveFolder(FileSystem* fs, const std::string& folder,
                          absl::FunctionRef<absl::Status(absl::string_view name)> before) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto names = fs->ListDirectory(folder);
    if (absl::IsNotFound(names.status())) return absl::OkStatus();
    RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      RETURN_IF_ERROR(before(name));
      const absl::Status removed = fs->Remove(JoinPath(folder, name));
      if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    }
    const absl::Status removed = fs->Remove(folder);
    if (removed.ok() || absl::IsNotFound(removed)) return absl::OkStatus();
    if (!absl::IsFailedPrecondition(removed)) return removed;
  }
  return absl::UnavailableError(absl::StrCat("cannot empty ", folder, ": another chief keeps writing"));
}

}  // namespace

// Does not use the FencedFiles, because a thread that hangs in a write may outlive it.
class FencedFiles::StagedFile : public WritableFile {
 public:
  explicit StagedFile(std::unique_ptr<WritableFile> base) : base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override { return base_->Append(data); }
  absl::Status Flush() override { return base_->Flush(); }
  absl::Status Sync() override { return base_->Sync(); }
  absl::Status Close() override {
    open_.reset();
    return base_->Close();
  }
  std::weak_ptr<const bool> open() const { return open_; }

 private:
  const std::unique_ptr<WritableFile> base_;
  // Held as long as the file is open. Weak pointers to it tell whether the file is still open.
  std::shared_ptr<const bool> open_ = std::make_shared<const bool>(true);
};

FencedFiles::FencedFiles(FileSystem* base, const std::string& logdir, int64_t generation, std::unique_ptr<Lock> owner)
    : base_(base),
      logdir_(logdir),
      generation_(generation),
      folder_(FolderOf(logdir, generation)),
      directory_(Dirname(JoinPath(logdir, "name"))),
      owner_(std::move(owner)) {}

FencedFiles::~FencedFiles() {
  // A folder that is left behind does no harm, because the next chief removes it. The marks of an earlier chief's files
  // must stay.
  RemoveFolder(base_, folder_, [this](absl::string_view name) {
    const bool earlier = !fenced_ && absl::StartsWith(name, kOpenPrefix);
    return earlier ? absl::FailedPreconditionError("the file is not replaced yet") : absl::OkStatus();
  }).IgnoreError();
}

absl::StatusOr<std::unique_ptr<FencedFiles>> FencedFiles::Create(FileSystem* base, const std::string& logdir,
                                                                 int64_t least) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> generations, Generations(base, logdir));
  int64_t generation = least;
  if (!generations.empty()) generation = std::max(generation, generations.back() + 1);
  while (true) {
    const std::string folder = FolderOf(logdir, generation);
    RETURN_IF_ERROR(base->CreateDirectory(folder));
    auto lock = base->LockFile(JoinPath(folder, kOwnerFile));
    if (lock.ok()) {
      return std::unique_ptr<FencedFiles>(new FencedFiles(base, logdir, generation, *std::move(lock)));
    }
    // NotFound means that a later chief has just removed the folder.
    if (!absl::IsFailedPrecondition(lock.status()) && !absl::IsNotFound(lock.status())) return lock.status();
    ++generation;
  }
}

absl::StatusOr<std::vector<int64_t>> FencedFiles::Generations(FileSystem* base, const std::string& logdir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, base->ListDirectory(logdir));
  std::vector<int64_t> generations;
  for (const std::string& name : names) {
    const absl::optional<int64_t> generation = GenerationOf(name);
    if (generation && *generation < std::numeric_limits<int64_t>::max()) generations.push_back(*generation);
  }
  std::sort(generations.begin(), generations.end());
  return generations;
}

std::string FencedFiles::FolderOf(const std::string& logdir, int64_t generation) {
  return JoinPath(logdir, absl::StrCat(kFolderPrefix, generation));
}

absl::StatusOr<bool> FencedFiles::IsOwned(FileSystem* base, const std::string& logdir, int64_t generation) {
  return base->IsLocked(JoinPath(FolderOf(logdir, generation), kOwnerFile));
}

bool FencedFiles::Covers(const std::string& path) const { return Dirname(path) == directory_; }

std::string FencedFiles::Staged(const std::string& path) const { return JoinPath(folder_, Basename(path)); }

absl::Status FencedFiles::Check() const {
  ASSIGN_OR_RETURN(const bool exists, base_->Exists(folder_));
  if (exists) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("another chief has taken over ", logdir_, ": it has removed ", folder_));
}

absl::Status FencedFiles::Beat() {
  const auto file = base_->NewWritableFile(JoinPath(folder_, kAliveFile));
  if (!file.ok()) return Explain(file.status());
  RETURN_IF_ERROR((*file)->Append(absl::StrCat(++beats_, "\n")));
  return (*file)->Close();
}

absl::StatusOr<absl::optional<FencedFiles::LastBeat>> FencedFiles::ReadLastBeat(FileSystem* base,
                                                                                const std::string& logdir) {
  ASSIGN_OR_RETURN(std::vector<int64_t> generations, Generations(base, logdir));
  while (!generations.empty()) {
    ASSIGN_OR_RETURN(const bool owned, IsOwned(base, logdir, generations.back()));
    if (owned) break;
    generations.pop_back();
  }
  if (generations.empty()) return absl::optional<LastBeat>();
  LastBeat beat;
  beat.generation = generations.back();
  const auto text = ReadFile(base, JoinPath(FolderOf(logdir, beat.generation), kAliveFile));
  if (absl::IsNotFound(text.status())) return absl::optional<LastBeat>();
  // The file has become shorter since it was opened, so a beat is being written.
  if (absl::IsDataLoss(text.status())) return absl::make_optional(beat);
  RETURN_IF_ERROR(text.status());
  beat.text = *text;
  return absl::make_optional(beat);
}

absl::Status FencedFiles::Explain(absl::Status status) const {
  if (absl::IsNotFound(status)) RETURN_IF_ERROR(Check());
  return status;
}

absl::Status FencedFiles::FenceEarlier() {
  ASSIGN_OR_RETURN(const std::vector<int64_t> generations, Generations(base_, logdir_));
  if (!generations.empty() && generations.back() > generation_) {
    return absl::FailedPreconditionError(absl::StrCat("another chief is taking over ", logdir_,
                                                      ": it enters generation ", generations.back(),
                                                      ", the generation here is ", generation_));
  }
  for (const int64_t generation : generations) {
    if (generation < generation_) RETURN_IF_ERROR(Fence(generation));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, base_->ListDirectory(folder_));
  for (absl::string_view mark : names) {
    const std::string path = JoinPath(folder_, mark);
    if (!absl::ConsumePrefix(&mark, kOpenPrefix)) continue;
    RETURN_IF_ERROR(ReplaceByCopy(std::string(mark.rbegin(), mark.rend())));
    RETURN_IF_ERROR(base_->Remove(path));
  }
  fenced_ = true;
  return absl::OkStatus();
}

absl::Status FencedFiles::Fence(int64_t generation) {
  return RemoveFolder(base_, FolderOf(logdir_, generation), [this](absl::string_view name) -> absl::Status {
    if (!absl::StartsWith(name, kOpenPrefix)) return absl::OkStatus();
    // The mark moves first, so that it survives if this chief is killed before it has replaced the file.
    ASSIGN_OR_RETURN(const auto mark, base_->NewWritableFile(JoinPath(folder_, name)));
    return mark->Close();
  });
}

absl::Status FencedFiles::ReplaceByCopy(const std::string& name) {
  const std::string path = JoinPath(logdir_, name);
  const auto original = base_->NewRandomAccessFile(path);
  if (absl::IsNotFound(original.status())) return absl::OkStatus();
  RETURN_IF_ERROR(original.status());
  const std::string staged = JoinPath(folder_, "copy");
  ASSIGN_OR_RETURN(const auto copy, base_->NewWritableFile(staged));
  std::string piece;
  for (uint64_t offset = 0; offset < (*original)->size(); offset += piece.size()) {
    piece.resize(std::min(kPieceSize, (*original)->size() - offset));
    const absl::Status read = (*original)->Read(offset, piece.size(), &piece[0]);
    if (absl::IsDataLoss(read)) {
      LOG(WARNING) << path << " is cut off at byte " << offset << ": " << read.message();
      break;
    }
    RETURN_IF_ERROR(read);
    RETURN_IF_ERROR(copy->Append(piece));
  }
  RETURN_IF_ERROR(copy->Sync());
  RETURN_IF_ERROR(copy->Close());
  RETURN_IF_ERROR(base_->Rename(staged, path));
  return base_->SyncDirectory(directory_);
}

bool FencedFiles::Forget(const std::string& path) {
  MutexLock lock(&mutex_);
  const auto it = open_.find(path);
  if (it == open_.end()) return false;
  const bool open = !it->second.expired();
  open_.erase(it);
  return open;
}

absl::Status FencedFiles::NoteOpen(absl::string_view name) {
  ASSIGN_OR_RETURN(const auto mark, base_->NewWritableFile(JoinPath(folder_, OpenMark(name))));
  return mark->Close();
}

absl::StatusOr<std::unique_ptr<WritableFile>> FencedFiles::NewWritableFile(const std::string& path) {
  if (!Covers(path)) return base_->NewWritableFile(path);
  absl::StatusOr<std::unique_ptr<WritableFile>> base = base_->NewWritableFile(Staged(path));
  if (!base.ok()) return Explain(base.status());
  auto file = std::make_unique<StagedFile>(*std::move(base));
  MutexLock lock(&mutex_);
  open_[path] = file->open();
  return file;
}

absl::Status FencedFiles::Rename(const std::string& from, const std::string& to) {
  if (!Covers(from)) return base_->Rename(from, to);
  if (Forget(from)) {
    const absl::Status noted = NoteOpen(Basename(to));
    if (!noted.ok()) return Explain(noted);
  }
  return Explain(base_->Rename(Staged(from), to));
}

absl::Status FencedFiles::Remove(const std::string& path) {
  if (!Covers(path)) return base_->Remove(path);
  Forget(path);
  const std::string staged = Staged(path);
  const absl::Status removed = base_->Remove(staged);
  if (!absl::IsNotFound(removed)) return removed;
  const absl::Status moved = base_->Rename(path, staged);
  return moved.ok() ? base_->Remove(staged) : Explain(moved);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> FencedFiles::NewRandomAccessFile(const std::string& path) {
  return base_->NewRandomAccessFile(path);
}

absl::StatusOr<bool> FencedFiles::Exists(const std::string& path) { return base_->Exists(path); }

absl::StatusOr<std::vector<std::string>> FencedFiles::ListDirectory(const std::string& path) {
  return base_->ListDirectory(path);
}

absl::Status FencedFiles::CreateDirectory(const std::string& path) { return base_->CreateDirectory(path); }

absl::Status FencedFiles::SyncDirectory(const std::string& path) { return base_->SyncDirectory(path); }

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> FencedFiles::LockFile(const std::string& path) {
  return base_->LockFile(path);
}

absl::StatusOr<bool> FencedFiles::IsLocked(const std::string& path) { return base_->IsLocked(path); }

}  // namespace lockstep
