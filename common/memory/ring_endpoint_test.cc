#include "lockstep/common/memory/ring_endpoint.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lockstep/common/memory/shared_memory.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMessageBytes = 1 << 20;
// Offsets from docs/wire.md.
constexpr size_t kWritten = 0, kFull = 8, kRead = 64, kAsleep = 72, kRing = 192;
constexpr size_t kEndBytes = kRing + RingEndpoint::kRingBytes;

std::unique_ptr<RingEndpoint> NewEnd() { return RingEndpoint::Create(kMaxMessageBytes).value(); }

// Returns a writable address of an endpoint's memory in this process. Before Linux 5.1, other processes can write there
// too.
char* OwnMemory(const RingEndpoint& end) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // A line such as "7f0c6d000000-7f0c6d011000 rw-s 00000000 00:01 1034 /memfd:lockstep (deleted)".
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 5 || fields[1] != "rw-s" || fields[4] != absl::StrCat(end.handle().inode())) continue;
    return reinterpret_cast<char*>(std::stoull(fields[0], nullptr, 16));
  }
  ADD_FAILURE() << "it is not mapped";
  return nullptr;
}

std::atomic<uint32_t>* OwnWord(const RingEndpoint& end, size_t place) {
  return reinterpret_cast<std::atomic<uint32_t>*>(OwnMemory(end) + place);
}

class RingEndpointTest : public testing::Test {
 protected:
  RingEndpointTest() : a_(NewEnd()), b_(NewEnd()) {
    EXPECT_TRUE(a_->Attach(b_->handle()).ok());
    EXPECT_TRUE(b_->Attach(a_->handle()).ok());
  }

  static absl::StatusOr<bool> Send(const std::string& message, RingEndpoint* end) {
    end->BeginMessage(message.size());
    end->Append(message);
    return end->Flush();
  }
  static std::string Receive(RingEndpoint* end) {
    std::string message;
    return end->Receive(&message).value() ? message : "none";
  }
  // Blocks until a message arrives.
  static std::string Await(RingEndpoint* end) {
    for (std::string message;;) {
      const uint32_t ticket = end->Ticket();
      if (end->Receive(&message).value()) return message;
      end->Wait(ticket, absl::InfiniteDuration());
    }
  }
  static void SendAll(const std::string& message, RingEndpoint* end) {
    uint32_t ticket = end->Ticket();
    for (bool sent = Send(message, end).value(); !sent; sent = end->Flush().value()) {
      end->Wait(ticket, absl::InfiniteDuration());
      ticket = end->Ticket();
    }
  }

  std::unique_ptr<RingEndpoint> a_, b_;
};

TEST_F(RingEndpointTest, CarriesMessagesInOrderBothWays) {
  EXPECT_EQ(Receive(a_.get()), "none");
  EXPECT_TRUE(*Send("one", a_.get()));
  EXPECT_TRUE(*Send("", a_.get()));
  EXPECT_TRUE(*Send("back", b_.get()));
  EXPECT_EQ(Receive(b_.get()), "one");
  EXPECT_EQ(Receive(b_.get()), "");
  EXPECT_EQ(Receive(b_.get()), "none");
  EXPECT_EQ(Receive(a_.get()), "back");
}

TEST_F(RingEndpointTest, GoesAroundTheRing) {
  // Over the loop, the end of the ring splits lengths and contents at every position.
  for (size_t i = 0; i < 3 * RingEndpoint::kRingBytes / 100; ++i) {
    const std::string message(97 + i % 7, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(*Send(message, a_.get()));
    ASSERT_EQ(Receive(b_.get()), message) << i;
  }
}

TEST_F(RingEndpointTest, SendsOnWhenTheOtherEndHasRead) {
  std::string message(3 * RingEndpoint::kRingBytes, '\0');
  for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<char>(i * 7 + i / 251);
  EXPECT_FALSE(*Send(message, a_.get()));
  EXPECT_FALSE(*a_->Flush());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Receive(b_.get()), "none") << i;
    ASSERT_EQ(*a_->Flush(), i == 2) << i;
  }
  EXPECT_EQ(Receive(b_.get()), message);
}

TEST_F(RingEndpointTest, ReceivesNoMessageThatIsTooLong) {
  a_->BeginMessage(kMaxMessageBytes + 1);
  EXPECT_TRUE(*a_->Flush());
  std::string message;
  EXPECT_TRUE(absl::IsResourceExhausted(b_->Receive(&message).status()));
}

TEST_F(RingEndpointTest, WaitEndsWhenAMessageComes) {
  std::thread other([this] { SendAll("late", a_.get()); });
  EXPECT_EQ(Await(b_.get()), "late");
  other.join();
}

TEST_F(RingEndpointTest, WaitEndsWhenThereIsAPlaceAgain) {
  const std::string message(5 * RingEndpoint::kRingBytes, 'x');
  std::thread other([&] { SendAll(message, a_.get()); });
  EXPECT_EQ(Await(b_.get()), message);
  other.join();
}

TEST_F(RingEndpointTest, WaitReturnsIfBytesCameSinceTheTicket) {
  const uint32_t ticket = b_->Ticket();
  EXPECT_TRUE(*Send("x", a_.get()));
  b_->Wait(ticket, absl::InfiniteDuration());
}

TEST_F(RingEndpointTest, WakeEndsTheCurrentOrTheNextWait) {
  for (int i = 0; i < 1000; ++i) {
    std::thread other([this] { b_->Wake(); });
    b_->Wait(b_->Ticket(), absl::InfiniteDuration());
    other.join();
  }
}

TEST_F(RingEndpointTest, WakeDoesNotWaitForThePeersWord) {
  OwnWord(*b_, kAsleep)->store(1);
  b_->Wake();
  b_->Wait(b_->Ticket(), absl::InfiniteDuration());
}

TEST_F(RingEndpointTest, WakeEndsAWaitWhoseWordWasCleared) {
  for (int i = 0; i < 1000; ++i) {
    std::thread other([this] {
      OwnWord(*b_, kAsleep)->store(0);
      b_->Wake();
    });
    b_->Wait(b_->Ticket(), absl::InfiniteDuration());
    other.join();
  }
}

TEST_F(RingEndpointTest, FlushEndsWhateverThePeerWrites) {
  std::atomic<bool> ending{false};
  std::thread other([&, full = OwnWord(*a_, kFull)] {
    while (!ending.load()) full->store(0);
  });
  const std::string message(2 * RingEndpoint::kRingBytes, 'x');
  EXPECT_FALSE(*Send(message, a_.get()));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(*a_->Flush());
  ending.store(true);
  other.join();
}

TEST_F(RingEndpointTest, WaitEndsAfterItsLimit) { b_->Wait(b_->Ticket(), absl::Milliseconds(1)); }

TEST_F(RingEndpointTest, LosesNothingBetweenTwoThreads) {
  constexpr int kMessages = 20000;
  const auto text = [](int i) { return std::string(static_cast<size_t>(i % 500), static_cast<char>('a' + i % 26)); };
  std::thread other([&] {
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(Await(a_.get()), text(i));
      SendAll(text(i + 1), a_.get());
    }
  });
  for (int i = 0; i < kMessages; ++i) {
    SendAll(text(i), b_.get());
    ASSERT_EQ(Await(b_.get()), text(i + 1));
  }
  other.join();
}

TEST_F(RingEndpointTest, AttachesOnlyToMemoryOfItsSize) {
  const auto memory = SharedMemory::Create(kEndBytes - 64).value();
  EXPECT_TRUE(absl::IsInvalidArgument(NewEnd()->Attach(memory->handle())));
  v1::SharedMemoryHandle gone = a_->handle();
  gone.set_file_descriptor(-1);
  EXPECT_TRUE(absl::IsNotFound(NewEnd()->Attach(gone)));
}

// An endpoint whose peer's memory has arbitrary contents.
class HostileEndTest : public testing::Test {
 protected:
  HostileEndTest() : memory_(SharedMemory::Create(kEndBytes).value()), end_(NewEnd()) {
    EXPECT_TRUE(end_->Attach(memory_->handle()).ok());
  }
  void Put(size_t place, uint64_t value) { std::memcpy(memory_->data() + place, &value, sizeof(value)); }

  const std::unique_ptr<SharedMemory> memory_;
  const std::unique_ptr<RingEndpoint> end_;
  std::string message_;
};

TEST_F(HostileEndTest, MoreThanARingWasWritten) {
  for (const uint64_t written : {RingEndpoint::kRingBytes + 1, size_t{1} << 40, ~size_t{0}}) {
    Put(kWritten, written);
    EXPECT_TRUE(absl::IsInvalidArgument(end_->Receive(&message_).status())) << written;
  }
}

TEST_F(HostileEndTest, LessWasWrittenThanBefore) {
  Put(kRing, 1);  // the length, and the byte that follows
  Put(kWritten, 5);
  EXPECT_TRUE(*end_->Receive(&message_));
  Put(kWritten, 4);
  EXPECT_TRUE(absl::IsInvalidArgument(end_->Receive(&message_).status()));
}

TEST_F(HostileEndTest, MoreWasReadThanWritten) {
  for (const uint64_t read : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0} - RingEndpoint::kRingBytes - 1}) {
    Put(kRead, read);
    end_->BeginMessage(0);
    EXPECT_TRUE(absl::IsInvalidArgument(end_->Flush().status())) << read;
  }
}

TEST_F(HostileEndTest, LessWasReadThanBefore) {
  const std::string bytes(RingEndpoint::kRingBytes - 4, 'x');
  end_->BeginMessage(bytes.size());
  end_->Append(bytes);
  EXPECT_TRUE(*end_->Flush());
  Put(kRead, bytes.size() + 4);
  end_->BeginMessage(0);
  EXPECT_TRUE(*end_->Flush());
  Put(kRead, 0);
  end_->BeginMessage(0);
  EXPECT_TRUE(absl::IsInvalidArgument(end_->Flush().status()));
}

TEST_F(HostileEndTest, ALengthWithoutEnd) {
  Put(kRing, 0xffffffff);
  Put(kWritten, RingEndpoint::kRingBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(end_->Receive(&message_).status()));
}

TEST_F(HostileEndTest, ChangingMemoryGivesBytesOrErrorsOnly) {
  uint64_t random = 1;
  const auto draw = [&random] { return random = random * 6364136223846793005u + 1442695040888963407u; };
  for (int i = 0; i < 100000; ++i) {
    Put(kWritten, draw() >> (draw() % 64));
    Put(kRead, draw() >> (draw() % 64));
    Put(kRing + draw() % (RingEndpoint::kRingBytes - 8), draw());
    end_->BeginMessage(draw() % 100);
    end_->Flush().status().IgnoreError();
    const auto received = end_->Receive(&message_);
    if (received.ok() && *received) {
      EXPECT_LE(message_.size(), kMaxMessageBytes);
    }
  }
}

}  // namespace
}  // namespace lockstep
