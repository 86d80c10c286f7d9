#include "lockstep/server/sync/delivery/delivery_factory.h"

#include <algorithm>

#include "lockstep/server/sync/delivery/in_process_delivery.h"
#include "lockstep/server/sync/delivery/mapped_delivery.h"
#include "lockstep/server/sync/delivery/streamed_delivery.h"

namespace lockstep {

std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins) {
  switch (path) {
    case ValuePath::kInProcess:
      return std::make_unique<InProcessDelivery>(shard);
    case ValuePath::kShared:
      return std::make_unique<MappedDelivery>(stream, shard, pins);
    case ValuePath::kStreamed:
      break;
  }
  return std::make_unique<StreamedDelivery>(stream, shard, pins);
}

size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots) {
  const Compression& compression = shard.compression();
  int64_t element_bytes = sizeof(float);
  if (compression.values != v1::DT_FLOAT) element_bytes += sizeof(uint16_t);
  if (compression.top_k > 0) element_bytes += slots * static_cast<int64_t>(sizeof(float));
  const int64_t version_bytes = std::max<int64_t>(1, shard.layout().flat_elements() * element_bytes);
  return static_cast<size_t>(std::max(kMinOldVersions, bytes / version_bytes));
}

}  // namespace lockstep
