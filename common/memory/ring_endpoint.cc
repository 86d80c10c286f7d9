#include "lockstep/common/memory/ring_endpoint.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kLengthBytes = sizeof(uint32_t);

int Futex(const std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* limit) {
  // The word is in memory shared between processes, which FUTEX_PRIVATE_FLAG does not support.
  return static_cast<int>(
      syscall(SYS_futex, reinterpret_cast<const uint32_t*>(word), operation, value, limit, nullptr, 0));
}

}  // namespace

// The layout of an endpoint's memory. The byte counts only grow.
struct RingEndpoint::Half {
  // Written by the sender.
  alignas(kLineBytes) std::atomic<uint64_t> written;
  std::atomic<uint32_t> full;  // the sender waits for the other end to read
  // Written by the receiver.
  alignas(kLineBytes) std::atomic<uint64_t> read;
  std::atomic<uint32_t> asleep;  // the receiver waits
  // Written by both the sender and the receiver; changes when the other end may continue.
  alignas(kLineBytes) std::atomic<uint32_t> bell;
  alignas(kLineBytes) char ring[kRingBytes];
};

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint64_t>::is_always_lock_free, "");

absl::StatusOr<std::unique_ptr<RingEndpoint>> RingEndpoint::Create(size_t max_message_bytes) {
  ASSIGN_OR_RETURN(auto memory, SharedMemory::Create(sizeof(Half)));
  return std::unique_ptr<RingEndpoint>(new RingEndpoint(std::move(memory), max_message_bytes));
}

RingEndpoint::RingEndpoint(std::unique_ptr<SharedMemory> own, size_t max_message_bytes)
    : max_message_bytes_(max_message_bytes), own_memory_(std::move(own)), own_(new (own_memory_->data()) Half()) {}

absl::Status RingEndpoint::Attach(const v1::SharedMemoryHandle& peer) {
  if (peer.bytes() != sizeof(Half)) {
    return absl::InvalidArgumentError(absl::StrCat("a ring of ", peer.bytes(), " bytes, not ", sizeof(Half)));
  }
  ASSIGN_OR_RETURN(peer_memory_, SharedMemory::Map(peer));
  peer_ = reinterpret_cast<const Half*>(peer_memory_->data());
  return absl::OkStatus();
}

void RingEndpoint::RingIf(const std::atomic<uint32_t>& flag) {
  // The bell changes before the flag is read, and the other end sets the flag before it checks the bell, so at least
  // one of them sees the other's write.
  own_->bell.fetch_add(1);
  if (flag.load() != 0) Futex(&own_->bell, FUTEX_WAKE, 1, nullptr);
}

void RingEndpoint::BeginMessage(size_t bytes) {
  const auto length = static_cast<uint32_t>(bytes);
  unsent_.append(reinterpret_cast<const char*>(&length), kLengthBytes);
}

absl::StatusOr<bool> RingEndpoint::Flush() {
  const uint64_t written = own_->written.load(std::memory_order_relaxed);
  const uint64_t sent_before = sent_;
  for (bool waits = false;;) {
    const uint64_t unread = written + (sent_ - sent_before) - peer_->read.load();
    if (unread > kRingBytes) return absl::InvalidArgumentError("the other end has read what was not written");
    const uint64_t position = (written + (sent_ - sent_before)) % kRingBytes;
    const size_t bytes = std::min({unsent_.size() - sent_, kRingBytes - unread, kRingBytes - position});
    if (bytes == 0) {
      if (sent_ == unsent_.size() || waits) break;
      waits = true;
      own_->full.store(1);  // and look again
      continue;
    }
    std::memcpy(own_->ring + position, unsent_.data() + sent_, bytes);
    sent_ += bytes;
  }
  if (sent_ > sent_before) {
    own_->written.store(written + (sent_ - sent_before), std::memory_order_release);
    RingIf(peer_->asleep);
  }
  if (sent_ < unsent_.size()) return false;
  own_->full.store(0, std::memory_order_relaxed);
  unsent_.clear();
  sent_ = 0;
  return true;
}

void RingEndpoint::Take(size_t most, uint64_t* available, std::string* out) {
  while (most > 0 && *available > 0) {
    const uint64_t read = own_->read.load(std::memory_order_relaxed);
    const uint64_t position = read % kRingBytes;
    const size_t bytes = std::min({most, static_cast<size_t>(*available), kRingBytes - position});
    out->append(peer_->ring + position, bytes);
    own_->read.store(read + bytes);
    *available -= bytes;
    most -= bytes;
  }
}

absl::StatusOr<bool> RingEndpoint::Receive(std::string* message) {
  uint64_t available = peer_->written.load(std::memory_order_acquire) - own_->read.load(std::memory_order_relaxed);
  if (available == 0) return false;
  if (available > kRingBytes) return absl::InvalidArgumentError("the other end has written more than the ring holds");
  Take(kLengthBytes - length_.size(), &available, &length_);
  bool whole = false;
  if (length_.size() == kLengthBytes) {
    uint32_t length;
    std::memcpy(&length, length_.data(), kLengthBytes);
    if (length > max_message_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a message of ", length, " bytes; there may be ", max_message_bytes_));
    }
    Take(length - incoming_.size(), &available, &incoming_);
    whole = incoming_.size() == length;
  }
  if (peer_->full.load() != 0) RingIf(peer_->full);
  if (!whole) return false;
  message->swap(incoming_);
  incoming_.clear();
  length_.clear();
  return true;
}

uint32_t RingEndpoint::Ticket() const { return peer_->bell.load(); }

void RingEndpoint::Wait(uint32_t ticket, absl::Duration limit) {
  waiting_.store(true);
  // Do not spin before sleeping, because the other end needs the processor.
  own_->asleep.store(1);
  if (Ticket() == ticket && !woken_.load()) {
    const timespec time = absl::ToTimespec(limit);
    Futex(&peer_->bell, FUTEX_WAIT, ticket, limit == absl::InfiniteDuration() ? nullptr : &time);
  }
  own_->asleep.store(0);
  waiting_.store(false);
  woken_.store(false);
}

void RingEndpoint::Wake() {
  woken_.store(true);
  // Repeat the wake-up, because the receiver may be about to sleep and then miss it. Wake all waiters, because other
  // processes that map the peer's memory may sleep there too.
  while (waiting_.load() && woken_.load()) {
    Futex(&peer_->bell, FUTEX_WAKE, INT_MAX, nullptr);
    sched_yield();
  }
}

}  // namespace lockstep
