#ifndef LOCKSTEP_COMMON_MEMORY_RING_ENDPOINT_H_
#define LOCKSTEP_COMMON_MEMORY_RING_ENDPOINT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// An endpoint of a two-way connection between two processes on one machine: ordered messages through two rings of bytes
// in shared memory. Each end writes only its own memory, which the other maps for reading. This memory holds the ring
// that the end fills, the number of bytes that it has read from the other's ring, and a futex, the bell, which it rings
// when the other may continue. The peer's memory is untrusted, so its numbers are checked on every read, and messages
// are copied before use. The death of a peer must be detected elsewhere. docs/wire.md describes the layout. One thread
// at a time may send, and one may receive and wait; any may call Wake. Call Create and Attach before the other
// functions.
class RingEndpoint {
 public:
  static constexpr size_t kRingBytes = 64 << 10;

  // Messages longer than `max_message_bytes` are rejected on receipt. Returns the errors of SharedMemory::Create.
  static absl::StatusOr<std::unique_ptr<RingEndpoint>> Create(size_t max_message_bytes);
  // The handle to which the other end attaches.
  const v1::SharedMemoryHandle& handle() const { return own_memory_->handle(); }
  // Connects to the other end. Returns the errors of SharedMemory::Map, and InvalidArgument if the memory does not have
  // the size of an endpoint's.
  absl::Status Attach(const v1::SharedMemoryHandle& peer);

  // Starts a message of `bytes` bytes, which Flush sends after earlier messages. The caller must then append exactly
  // that many bytes.
  void BeginMessage(size_t bytes);
  void Append(absl::string_view bytes) { unsent_.append(bytes.data(), bytes.size()); }
  // Writes as much as fits into the ring; returns true if nothing is left. Errors: InvalidArgument if the peer's memory
  // is inconsistent.
  absl::StatusOr<bool> Flush();

  // Receives the next message; returns false if it has not arrived completely. Errors: InvalidArgument if the peer's
  // memory is inconsistent; ResourceExhausted if the message is too long.
  absl::StatusOr<bool> Receive(std::string* message);

  // Returns a ticket for Wait. To wait without missing a change, take a ticket, check whether there is anything to do,
  // and wait with the ticket.
  uint32_t Ticket() const;
  // Blocks until the other end has sent something, or has read enough for Flush to continue, since the ticket was
  // taken. Also returns after Wake, or when `limit` has passed.
  void Wait(uint32_t ticket, absl::Duration limit);
  // Ends the current or next Wait.
  void Wake();

 private:
  struct Half;

  RingEndpoint(std::unique_ptr<SharedMemory> own, size_t max_message_bytes);

  // Rings the bell, and wakes the other end if `flag`, in the other end's memory, shows that it waits.
  void RingIf(const std::atomic<uint32_t>& flag);
  // Appends at most `most` of the `available` bytes in the peer's ring to `out`.
  void Take(size_t most, uint64_t* available, std::string* out);

  const size_t max_message_bytes_;
  const std::unique_ptr<SharedMemory> own_memory_;
  Half* const own_;
  std::unique_ptr<const SharedMemory> peer_memory_;
  const Half* peer_ = nullptr;
  // State of the sender.
  std::string unsent_;
  size_t sent_ = 0;  // bytes of unsent_
  // State of the receiver.
  std::string length_, incoming_;
  // A copy of Half::asleep that other processes cannot write: older kernels let other processes of the user write to
  // the shared memory.
  std::atomic<bool> waiting_{false};
  std::atomic<bool> woken_{false};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_RING_ENDPOINT_H_
