#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {

class StepListener;

// A Step stream as the holder of pins. It may have ended: what it has not read yet still takes memory.
struct PinHolder {
  uint64_t session = 0;
  std::weak_ptr<StepListener> stream;
};

// The streams that keep versions of the values alive: by replies that are not read, or because their workers compute
// with the chief's memory. Finds the streams that must end for old versions to be few. A pin lives until the last copy
// of what Pin returned is gone, whatever has become of its stream. Not thread-safe; what Pin returns may be dropped on
// any thread, and may outlive this.
class VersionPins {
 public:
  // Of old versions so many may be kept, however many keep each.
  explicit VersionPins(size_t max_old) : max_old_(max_old) {}

  // Keeps `memory`, which belongs to `version`, for a stream.
  std::shared_ptr<const void> Pin(int64_t version, const PinHolder& holder, std::shared_ptr<const void> memory);

  // The current version has other memory from now on: what was pinned of it before counts as an older version.
  void OnCurrentReplaced() { ++replaced_; }

  // The streams that keep a version older than `current` and than the newest `max_old` of these. Each once, by session.
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
  // Of records_, to drop the expired ones before it grows further.
  size_t drop_at_ = 64;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
