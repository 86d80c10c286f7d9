#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {

class StepListener;

// A Step stream that holds pins. It may have ended, but what its worker has not read yet still takes memory.
struct PinHolder {
  uint64_t session = 0;
  std::weak_ptr<StepListener> stream;
};

// Records the streams that keep versions of the values alive, by unread replies or because their workers compute with
// the chief's memory. Finds the streams that must end to limit the number of old versions. A pin lives until the last
// copy of the pointer that Pin returned is gone, even if its stream has ended. Not thread-safe; pins may be dropped on
// any thread, and may outlive this.
class VersionPins {
 public:
  // `max_old` is the number of old versions that may be kept, by any number of streams each.
  explicit VersionPins(size_t max_old) : max_old_(max_old) {}

  // Keeps `memory`, which belongs to `version`, alive for a stream.
  std::shared_ptr<const void> Pin(int64_t version, const PinHolder& holder, std::shared_ptr<const void> memory);

  // Notes that the current version has new memory from now on: earlier pins of it count as an older version.
  void OnCurrentReplaced() { ++replaced_; }

  // Returns the streams that keep a version older than `current` and older than the newest `max_old` old versions. Each
  // appears once, ordered by session.
  std::vector<PinHolder> FindExcess(int64_t current);

 private:
  struct Record {
    int64_t version = 0;  // plus replaced_ at that time
    PinHolder holder;
    std::weak_ptr<const void> pin;
  };

  void DropExpired();

  const size_t max_old_;
  int64_t replaced_ = 0;
  std::vector<Record> records_;
  // Size of records_ at which expired records are dropped.
  size_t drop_at_ = 64;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
