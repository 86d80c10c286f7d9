#include "lockstep/server/rpc/step/step_route.h"

#include <utility>

#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/memory/ring_endpoint.h"

namespace lockstep {

StepRoute::StepRoute(Options options)
    : options_(std::move(options)), stream_(options_.call.get(), options_.read, options_.written) {}

void StepRoute::OnOffer(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner) {
  answer_.emplace();
  const absl::Status status = Connect(ring, std::move(owner));
  if (!status.ok()) LOG(INFO) << "a worker's frames go over gRPC, its ring is not used: " << status.message();
}

absl::Status StepRoute::Connect(const v1::SharedMemoryHandle& peer, std::shared_ptr<const void> owner) {
  ASSIGN_OR_RETURN(auto ring, RingEndpoint::Create(options_.max_message_bytes));
  RETURN_IF_ERROR(ring->Attach(peer));
  const v1::SharedMemoryHandle handle = ring->handle();
  RingStepWire::Options wire;
  wire.ring = std::move(ring);
  wire.read = options_.read;
  wire.written = options_.written;
  wire.on_broken = options_.on_broken;
  wire.executor = options_.executor;
  wire.owner = std::move(owner);
  ASSIGN_OR_RETURN(ring_, RingStepWire::Start(std::move(wire)));
  answer_ = handle;
  reader_ = ring_.get();
  options_.call->stream.Read(&beside_, options_.stream_read);
  return absl::OkStatus();
}

absl::optional<v1::SharedMemoryHandle> StepRoute::TakeAnswer() { return std::exchange(answer_, absl::nullopt); }

}  // namespace lockstep
