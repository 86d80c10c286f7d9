#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace lockstep {

// Who keeps which versions of the values alive: replies that are not read, and workers that compute with the chief's
// memory. Tells whose streams are to end for the old versions to be few. Life of a pin: from Pin until the last copy of
// what it returned is gone, or its session is forgotten. Not thread-safe; what Pin returns may be dropped on any
// thread, and may outlive this.
class VersionPins {
 public:
  // Of old versions so many may be kept, however many keep each.
  explicit VersionPins(size_t max_old) : max_old_(max_old) {}

  // Keeps `memory`, which belongs to `version`, for the session.
  std::shared_ptr<const void> Pin(int64_t version, uint64_t session, std::shared_ptr<const void> memory);

  // The session's stream has ended: nothing more can be done for what is left of its replies.
  void Forget(uint64_t session);

  // The sessions that keep a version older than `current` and than the newest `max_old` of these.
  std::set<uint64_t> FindExcess(int64_t current);

 private:
  struct Record {
    int64_t version = 0;
    uint64_t session = 0;
    std::weak_ptr<const void> pin;
  };

  void DropExpired();

  const size_t max_old_;
  std::vector<Record> records_;
  // Of records_, to drop the expired ones before it grows further.
  size_t drop_at_ = 64;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VERSION_PINS_H_
