#include "lockstep/server/rpc/step/ring_step_wire.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/limited_threads.h"
#include "lockstep/common/memory/ring_endpoint.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/transport/codec/ring_messages.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMessageBytes = 1 << 20;

grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  std::string text;
  EXPECT_TRUE(message.Dump(&slices).ok());
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

// A queue of events that may be added on any thread.
class Events {
 public:
  void Add(std::string event) {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    changed_.SignalAll();
  }
  // Blocks until there is an event and returns it.
  std::string Next() {
    MutexLock lock(&mutex_);
    while (next_ == events_.size()) changed_.Wait(&mutex_);
    return events_[next_++];
  }
  bool any() {
    MutexLock lock(&mutex_);
    return next_ < events_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

class Tag : public CompletionTag {
 public:
  Tag(const std::string& name, Events* events) : name_(name), events_(*events) {}
  void OnEvent(bool ok) override { events_.Add(name_ + (ok ? "" : " failed")); }

 private:
  const std::string name_;
  Events& events_;
};

class Owner {
 public:
  explicit Owner(Events* events) : events_(*events) {}
  ~Owner() { events_.Add("gone"); }

 private:
  Events& events_;
};

class RingStepWireTest : public testing::Test {
 protected:
  RingStepWireTest() : peer_(RingEndpoint::Create(kMaxMessageBytes).value()) {
    auto ring = RingEndpoint::Create(kMaxMessageBytes).value();
    EXPECT_TRUE(peer_->Attach(ring->handle()).ok());
    EXPECT_TRUE(ring->Attach(peer_->handle()).ok());
    Make(std::move(ring));
  }
  ~RingStepWireTest() override {
    wire_->Stop();
    while (events_.Next() != "gone") {
    }
  }

  RingStepWire::Options Options(std::unique_ptr<RingEndpoint> ring) {
    RingStepWire::Options options;
    options.ring = std::move(ring);
    options.read = &read_;
    options.written = &written_;
    options.on_broken = [this](const absl::Status& why) { events_.Add("broken: " + std::string(why.message())); };
    options.executor = Executor::Threads();
    options.owner = std::make_shared<Owner>(&events_);
    return options;
  }
  void Make(std::unique_ptr<RingEndpoint> ring) { wire_ = RingStepWire::Start(Options(std::move(ring))).value(); }

  void Send(const std::string& text) {
    PutMessage(Message(text), peer_.get());
    EXPECT_TRUE(*peer_->Flush());
  }
  std::string Receive() {
    for (grpc::ByteBuffer message;;) {
      const uint32_t ticket = peer_->Ticket();
      if (*TakeMessage(peer_.get(), &message)) return Text(message);
      peer_->Wait(ticket, absl::InfiniteDuration());
    }
  }

  Events events_;
  Tag read_{"read", &events_}, written_{"written", &events_};
  grpc::ByteBuffer received_;
  const std::unique_ptr<RingEndpoint> peer_;
  std::unique_ptr<RingStepWire> wire_;
};

TEST_F(RingStepWireTest, AReadEndsWhenAMessageComes) {
  wire_->Read(&received_);
  Send("one");
  Send("two");
  EXPECT_EQ(events_.Next(), "read");
  EXPECT_EQ(Text(received_), "one");
  EXPECT_FALSE(events_.any());  // no read is pending
}

TEST_F(RingStepWireTest, AWriteEndsImmediatelyIfItFits) {
  wire_->Write(Message("reply"));
  EXPECT_TRUE(events_.any());
  EXPECT_EQ(events_.Next(), "written");
  EXPECT_EQ(Receive(), "reply");
}

TEST_F(RingStepWireTest, AWriteEndsWhenTheWorkerHasReadEnough) {
  const std::string text(5 * RingEndpoint::kRingBytes, 'x');
  wire_->Read(&received_);
  wire_->Write(Message(text));
  EXPECT_FALSE(events_.any());
  EXPECT_EQ(Receive(), text);
  EXPECT_EQ(events_.Next(), "written");
}

TEST_F(RingStepWireTest, StopFailsPendingAndLaterOperations) {
  wire_->Read(&received_);
  wire_->Write(Message(std::string(5 * RingEndpoint::kRingBytes, 'x')));
  wire_->Stop();
  EXPECT_EQ(events_.Next(), "written failed");
  EXPECT_EQ(events_.Next(), "read failed");
  EXPECT_EQ(events_.Next(), "gone");
  wire_->Write(Message("late"));
  EXPECT_EQ(events_.Next(), "written failed");
  events_.Add("gone");  // needed at the end of the test
}

TEST_F(RingStepWireTest, StopBeforeTheFirstReadFailsIt) {
  wire_->Stop();
  EXPECT_EQ(events_.Next(), "gone");
  wire_->Read(&received_);
  EXPECT_EQ(events_.Next(), "read failed");
  events_.Add("gone");  // needed at the end of the test
}

TEST_F(RingStepWireTest, WithoutAThreadThereIsNone) {
  LimitedThreads none(0);
  RingStepWire::Options options = Options(RingEndpoint::Create(kMaxMessageBytes).value());
  options.executor = &none;
  EXPECT_TRUE(absl::IsResourceExhausted(RingStepWire::Start(std::move(options)).status()));
  EXPECT_EQ(events_.Next(), "gone");
}

TEST_F(RingStepWireTest, InvalidMemoryIsReportedAndClosesRing) {
  const auto memory = SharedMemory::Create(peer_->handle().bytes()).value();
  auto ring = RingEndpoint::Create(kMaxMessageBytes).value();
  ASSERT_TRUE(ring->Attach(memory->handle()).ok());
  wire_->Stop();
  EXPECT_EQ(events_.Next(), "gone");
  Make(std::move(ring));
  memory->data()[7] = 1;  // 2^56 bytes were written
  wire_->Read(&received_);
  EXPECT_EQ(events_.Next(), "broken: the other end has written more than the ring holds");
  wire_->Write(Message("late"));
  EXPECT_EQ(events_.Next(), "written failed");
}

}  // namespace
}  // namespace lockstep
