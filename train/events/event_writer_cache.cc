#include "lockstep/train/events/event_writer_cache.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace lockstep {
namespace {

// Returns the normalized path of a directory, which is the same however the path is spelled.
std::string Spelling(absl::string_view directory) {
  std::error_code error;
  const std::filesystem::path path(directory.begin(), directory.end());
  // The "." makes paths with and without a trailing "/" equal.
  return (std::filesystem::absolute(path, error) / ".").lexically_normal().string();
}

}  // namespace

EventWriterCache* EventWriterCache::OfProcess() {
  static auto* const cache = new EventWriterCache;
  return cache;
}

absl::StatusOr<std::shared_ptr<EventWriter>> EventWriterCache::Get(FileSystem* fs, Clock* clock,
                                                                   absl::string_view directory) {
  const Key key(fs, Spelling(directory));
  {
    MutexLock lock(&mutex_);
    while (entries_[key].opening) opened_.Wait(&mutex_);
    if (std::shared_ptr<EventWriter> writer = entries_[key].writer.lock(); writer != nullptr && !writer->closed()) {
      return writer;
    }
    entries_[key].opening = true;
  }
  absl::StatusOr<std::shared_ptr<EventWriter>> made = EventWriter::Create(fs, clock, std::string(directory));
  MutexLock lock(&mutex_);
  if (made.ok()) {
    entries_[key] = Entry{*made};
  } else {
    entries_.erase(key);
  }
  opened_.SignalAll();
  return made;
}

absl::Status EventWriterCache::Clear() {
  std::vector<std::shared_ptr<EventWriter>> writers;
  {
    MutexLock lock(&mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.opening) {
        ++it;
        continue;
      }
      if (std::shared_ptr<EventWriter> writer = it->second.writer.lock()) writers.push_back(std::move(writer));
      it = entries_.erase(it);
    }
  }
  absl::Status first;
  for (const auto& writer : writers) first.Update(writer->Close());
  return first;
}

}  // namespace lockstep
