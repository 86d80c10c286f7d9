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

// One end of a two-way connection between two processes of one machine: messages in order, through two rings of bytes
// in shared memory. Each end writes its own memory alone, which the other maps for reading: the ring that it fills, how
// far it has read the other's, and a futex, its bell, that it rings when the other may go on. What the other's memory
// says is checked on every look, and a message is copied before anybody sees it. An end that dies is silent: that it is
// gone must be noticed elsewhere. docs/wire.md has the layout.
// One thread at a time sends, and one receives and waits; Wake is for any. Life: Create, Attach, the rest.
class RingEndpoint {
 public:
  static constexpr size_t kRingBytes = 64 << 10;

  // Messages of more than `max_message_bytes` are not received. Errors: those of SharedMemory::Create.
  static absl::StatusOr<std::unique_ptr<RingEndpoint>> Create(size_t max_message_bytes);
  // What the other end attaches to.
  const v1::SharedMemoryHandle& handle() const { return own_memory_->handle(); }
  // Connects with the other end. Errors: those of SharedMemory::Map; InvalidArgument when the size is not that of an
  // end.
  absl::Status Attach(const v1::SharedMemoryHandle& peer);

  // A message that Flush will send, behind the others: its length, then as many bytes.
  void BeginMessage(size_t bytes);
  void Append(absl::string_view bytes) { unsent_.append(bytes.data(), bytes.size()); }
  // Writes what there is a place for: true when nothing is left. Errors: InvalidArgument when the other end's memory
  // makes no sense.
  absl::StatusOr<bool> Flush();

  // The next message, if it has come whole. Errors: InvalidArgument when the other end's memory makes no sense;
  // ResourceExhausted when the message is too long.
  absl::StatusOr<bool> Receive(std::string* message);

  // To wait without missing anything: take a ticket, look whether there is anything to do, and wait with the ticket.
  uint32_t Ticket() const;
  // Blocks until the other end has sent something since the ticket, or has read what Flush had no place for; or until
  // Wake, or for `limit`.
  void Wait(uint32_t ticket, absl::Duration limit);
  // Ends the Wait that is under way, or the next.
  void Wake();

 private:
  struct Half;

  RingEndpoint(std::unique_ptr<SharedMemory> own, size_t max_message_bytes);

  // Rings if `flag` of the other end says that it waits for it.
  void RingIf(const std::atomic<uint32_t>& flag);
  // Appends up to `most` bytes of the `available` to `out`.
  void Take(size_t most, uint64_t* available, std::string* out);

  const size_t max_message_bytes_;
  const std::unique_ptr<SharedMemory> own_memory_;
  Half* const own_;
  std::unique_ptr<const SharedMemory> peer_memory_;
  const Half* peer_ = nullptr;
  // Of the sender.
  std::string unsent_;
  size_t sent_ = 0;  // of unsent_
  // Of the receiver.
  std::string length_, incoming_;
  // What Half::asleep says, where nobody else can write: older kernels let other processes of the user into the memory.
  std::atomic<bool> waiting_{false};
  std::atomic<bool> woken_{false};
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_RING_ENDPOINT_H_
