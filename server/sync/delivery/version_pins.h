#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace lockstep {

class StepListener;

// A Step stream that holds pins. Even after the stream has ended, replies that its worker has not read still occupy
// memory.
struct PinHolder {
  uint64_t session = 0;
  std::weak_ptr<StepListener> stream;
};

// Orders the holders of pins by session, then by stream.
struct PinHolderOrder {
  bool operator()(const PinHolder& a, const PinHolder& b) const {
    return a.session != b.session ? a.session < b.session : a.stream.owner_before(b.stream);
  }
};
using PinHolders = std::set<PinHolder, PinHolderOrder>;

// The pins of one kind of versioned memory. Not thread-safe.
class PinList {
 public:
  // `max_old` is the number of old versions that may be kept, each by any number of streams.
  explicit PinList(size_t max_old) : max_old_(max_old) {}

  // Keeps `memory`, which belongs to `version`, alive for a stream as long as the returned pointer or a copy of it
  // exists.
  std::shared_ptr<const void> Pin(int64_t version, const PinHolder& holder, std::shared_ptr<const void> memory);
  // Records that the current version has moved to new memory. Its earlier pins then count as pins of an older version.
  void OnCurrentReplaced() { ++replaced_; }
  // Adds to `excess` the streams that pin a version older than both `current` and the newest `max_old` old versions.
  void FindExcess(int64_t current, PinHolders* excess);

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

// Tracks the streams that keep versions of the values alive, through unread replies or because their workers compute
// with the chief's memory. Finds the streams that must end to limit the number of old versions. A pin lives until the
// last copy of the pointer that Pin returned is gone, even after its stream has ended. Not thread-safe, but pins may be
// dropped on any thread. Pins may outlive this object.
class VersionPins {
 public:
  // `max_old` is the number of old versions of the values that may be kept, each by any number of streams.
  explicit VersionPins(size_t max_old) : values_(max_old) {}

  // Keeps `memory`, which belongs to `version`, alive for a stream as long as the returned pointer or a copy of it
  // exists.
  std::shared_ptr<const void> Pin(int64_t version, const PinHolder& holder, std::shared_ptr<const void> memory) {
    return values_.Pin(version, holder, std::move(memory));
  }
  // Keeps `memory`, which holds the current values of the constant variables, alive for a stream. These values belong
  // to no version. They become old when they are replaced, and at most kMaxOldConstants sets of old ones may be kept.
  std::shared_ptr<const void> PinConstants(const PinHolder& holder, std::shared_ptr<const void> memory) {
    return constants_.Pin(/*version=*/0, holder, std::move(memory));
  }
  static constexpr size_t kMaxOldConstants = 2;

  // Records that the current version has moved to new memory. Its earlier pins then count as pins of an older version.
  void OnCurrentReplaced() { values_.OnCurrentReplaced(); }
  // Records that the constant variables have moved to new memory. Their earlier pins then count as old.
  void OnConstantsReplaced() { constants_.OnCurrentReplaced(); }

  // Returns the streams that pin a version older than both `current` and the newest `max_old` old versions, or constant
  // values older than the newest kMaxOldConstants old ones. Each stream appears once; the streams are ordered by
  // session.
  std::vector<PinHolder> FindExcess(int64_t current);

 private:
  PinList values_;
  PinList constants_{kMaxOldConstants};
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
