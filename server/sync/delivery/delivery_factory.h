#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_DELIVERY_FACTORY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_DELIVERY_FACTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

// How a worker gets the values of its token's step.
enum class ValuePath {
  // StepConnection::values(): in process. Gradients are float32 (rounded, if the run compresses them).
  kInProcess,
  // In replies, piece by piece.
  kStreamed,
  // Replies name the memory that they lie in, which stays as it is until the worker ends its contribution, or loses its
  // stream. For a run that shares its values and compresses nothing.
  kShared,
};

// `shard` and `pins` must outlive the result.
std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins);

// One worker may hang for a long time while another is only slow.
constexpr int64_t kMinOldVersions = 2;
// Returns how many versions fit into `bytes`, at least kMinOldVersions.
size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_DELIVERY_FACTORY_H_
